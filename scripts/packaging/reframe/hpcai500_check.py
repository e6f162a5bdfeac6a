# SPDX-License-Identifier: Apache-2.0
r"""ReFrame tests of an installed hpcai500.

    reframe -C scripts/packaging/reframe/settings.py -c scripts/packaging/reframe -r \
        --performance-report --report-junit=junit.xml
    reframe ... -S program=/path/to/hpcai500 -S modules=hpcai500 -S num_tasks=8 \
        -P configuration=imagenet_goyal -S overrides=data.path=/data/train,...

A test passes if the RESULT line has an expected verdict, `hpcai500 verify` prints the same line, and
the numbers of result.json are within the tolerances of references.json. A site stores its machine's
numbers there, or in the FILE of -S references=FILE. Numbers without a reference are only
reported. check.sh runs this with ReFrame 4.10 on one machine without a scheduler.
"""
import json
import os

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.backends import getlauncher

NUMBERS = {  # name -> (keys in result.json, unit)
    "flops": (("scores", "flops"), "FLOP/s"),
    "vflops": (("scores", "vflops"), "FLOP/s"),
    "images_per_second": (("throughput", "images_per_second"), "images/s"),
    "quality": (("quality", "ensemble"), "fraction"),
    "total_seconds": (("time", "total_seconds"), "s"),
}


@rfm.simple_test
class HpcAi500Check(rfm.RunOnlyRegressionTest):
    program = variable(str, value="hpcai500")
    configs = variable(str, value=os.environ.get("HPCAI500_CONFIGS", os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "../../../configs")))
    references = variable(str, value=os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                  "references.json"))
    overrides = variable(typ.List[str], value=[])  # section.key=value
    verdicts = variable(typ.List[str], value=["VALID", "CUSTOM"])

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    configuration = parameter(["smoke"])  # two base models on synthetic data, in seconds
    num_tasks = 2
    time_limit = "20m"

    @run_before("run")
    def set_command(self):
        self.executable = self.program
        self.executable_opts = ["run", "--config", f"{self.configs}/{self.configuration}.yaml",
                                "--output", "result"]
        for override in self.overrides:
            self.executable_opts += ["--set", override]
        self.postrun_cmds = [f"{self.program} verify result"]
        if isinstance(self.job.launcher, getlauncher("mpirun")):
            self.job.launcher.options = ["--bind-to", "none"]

    @run_before("performance")
    def set_references(self):
        with open(self.references, encoding="utf-8") as file:
            systems = json.load(file).get(self.configuration, {})
        self.reference = {
            system: {name: tuple(values) + (NUMBERS[name][1],) for name, values in numbers.items()}
            for system, numbers in systems.items()}
        self.perf_variables = {
            name: sn.make_performance_function(self.number(*where), unit)
            for name, (where, unit) in NUMBERS.items() if self.is_dry_run() or self.has(*where)}

    @sanity_function
    def is_verified(self):
        line = r"^RESULT (\w+)  workload=\S+ M=\d+ P=\d+ .*manifest=([0-9a-f]{64})$"
        found = sn.extractall(line, self.stdout, (1, 2))
        return sn.all([
            sn.assert_eq(sn.count(found), 2, msg="{0} RESULT lines of run and verify, not {1}"),
            sn.assert_eq(sn.getitem(found, 0), sn.getitem(found, 1)),
            sn.assert_in(sn.getitem(sn.getitem(found, 0), 0), self.verdicts),
        ])

    def result(self):
        with open(os.path.join(self.stagedir, "result", "result.json"), encoding="utf-8") as file:
            return json.load(file)

    def has(self, section, key):
        return self.result()[section][key] is not None

    @deferrable
    def number(self, section, key):
        return self.result()[section][key]
