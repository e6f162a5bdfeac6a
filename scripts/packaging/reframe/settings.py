# SPDX-License-Identifier: Apache-2.0
"""A machine without a scheduler, for ReFrame; on a cluster, use that site's own settings."""

site_configuration = {
    "systems": [{
        "name": "workstation",
        "descr": "the machine that reframe runs on",
        "hostnames": [".*"],
        "partitions": [{
            "name": "default",
            "scheduler": "local",
            "launcher": "mpirun",
            "environs": ["any"],
        }],
    }],
    "environments": [{"name": "any", "cc": "cc", "cxx": "", "ftn": ""}],
}
