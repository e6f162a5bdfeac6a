# SPDX-License-Identifier: Apache-2.0
"""ReFrame settings for a machine without a scheduler. On a cluster, use the settings of its site."""

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
