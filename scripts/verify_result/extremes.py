# SPDX-License-Identifier: Apache-2.0
"""Numbers of the run that are the largest or the smallest of its groups."""
from arithmetic import known
from ranks import SPREAD
from tables import PHASES


class ExtremesCheck:
    """`groups` are the rows of work.groups; `results` has the record.json of each, or `{}` without one."""

    def __init__(self, run, groups, results):
        self.run, self.record, self.config = run, run.record, run.config
        self.groups, self.results = groups, results

    def check(self):
        self.check_utilization()
        self.check_time_breakdown()
        self.check_communication()
        self.check_exposed_communication()
        self.check_parallel()

    def compare(self, section, key, wanted, source="work.groups"):
        self.run.must_be(f"{section}.{key}", self.record[section][key], wanted, source)

    def largest(self, key):
        """The largest value of `key` over the record.json of all groups; None if no group has one."""
        return max(known(result.get(key) for result in self.results), default=None)

    def largest_count(self, key):
        return max(result.get(key, 0) for result in self.results)

    def check_utilization(self):
        flops, ceiling = self.record["scores"]["flops"], self.record["roofline"]["ceiling_flops"]
        per_rank = None if flops is None else flops / self.record["topology"]["ranks"]
        utilization = None if None in (per_rank, ceiling) else per_rank / ceiling
        self.compare("utilization", "flops_per_rank", per_rank, "scores.flops")
        self.compare("utilization", "fraction", utilization, "roofline.ceiling_flops")

    def check_time_breakdown(self):
        finished = [group["time_breakdown"] for group in self.groups if not group["failure"]]
        step_seconds = known(breakdown["step_seconds"] for breakdown in finished)
        self.compare("time_breakdown", "step_seconds", max(step_seconds, default=None))
        for name in (*(phase.removesuffix("_seconds") for phase in PHASES), "overlapped_communication"):
            for key in SPREAD:
                wanted = max(known(breakdown[name][key] for breakdown in finished), default=None)
                self.run.must_be(f"time_breakdown.{name}.{key}",
                                 self.record["time_breakdown"][name][key], wanted, "work.groups")
        stragglers = [row for breakdown in finished for row in breakdown["stragglers"]]
        self.compare("time_breakdown", "stragglers", stragglers)

    def check_communication(self):
        for key in ("algorithm", "precision"):
            self.compare("communication", key, self.config["communication." + key], "config")
        backends = sorted({result["all_reduce_backend"] for result in self.results
                           if result.get("all_reduce_backend")})
        self.compare("communication", "backend", " and ".join(backends) or "none")
        for key in ("gradient_bytes", "buckets", "statistics_sums_per_step", "statistics_bytes_per_step"):
            self.compare("communication", key, self.largest_count(key))
        for key in ("sent_bytes_per_step", "between_nodes_bytes_per_step", "out_of_node_bytes_per_step",
                    "statistics_seconds"):
            self.compare("communication", key, self.largest(key))
        bandwidths = known(result.get("bandwidth_bytes_per_second") for result in self.results)
        self.compare("communication", "bandwidth_bytes_per_second", min(bandwidths, default=None))

    def check_exposed_communication(self):
        exposed = [(group["communication_seconds"], group["iterations"]) for group in self.groups
                   if group["communication_seconds"] is not None]
        longest = max((seconds for seconds, _ in exposed), default=None)
        per_step = max((seconds / steps for seconds, steps in exposed if steps), default=None)
        self.compare("communication", "exposed_seconds", longest)
        self.compare("communication", "exposed_seconds_per_step", per_step)

    def check_parallel(self):
        parallel = self.record["parallel"]
        stages, shards, batches = (
            parallel[key] for key in ("pipeline_degree", "model_degree", "micro_batches"))
        for key in ("mode", "schedule"):
            self.compare("parallel", key, self.config["parallel." + key], "config")
        self.compare("parallel", "micro_batches", int(self.config["parallel.micro_batches"]), "config")
        degree = self.record["topology"]["degree"]
        self.compare("parallel", "data_degree", degree // (stages * shards), "topology.degree")
        bubble = (stages - 1) / (batches + stages - 1) if stages > 1 else None
        self.compare("parallel", "bubble_fraction", bubble)
        for kind, ranks in (("message", stages), ("shard", shards)):
            wait = self.largest(kind + "_wait_seconds")
            self.compare("parallel", kind + "_wait_seconds", wait if ranks > 1 else None)
        message_bytes = self.largest_count("message_bytes_per_step")
        self.compare("parallel", "message_bytes_per_step", message_bytes if stages > 1 else 0)
        self.compare("parallel", "shard_bytes_per_step", self.largest_count("shard_bytes_per_step"))
