# SPDX-License-Identifier: Apache-2.0
"""The base of all tasks: quality of the members and of the ensemble from stored predictions."""


class Task:
    """A subclass has its files, its metric and the keys of the numbers that it stores.

    It also defines `add_member`, `ensemble` and `members_interval`:
    * add_member(file) -> (numbers by member_keys, SHA-256 of the file); adds the predictions and sets
      is_specific: whether they are so specific that no other model has the same
    * ensemble() -> (numbers by ensemble_keys, SHA-256 of the file, confidence interval)
    * members_interval(seed) -> interval
    An interval is (low, high), None if it is undefined, False if it takes too long to compute here.
    """

    files = ("", "", "")  # of a member, of the ensemble, of the labels
    metric = ""
    member_keys = ("quality",)  # in groups/<m>/record.json
    ensemble_keys = ("ensemble",)  # in `quality` of result.json

    def __init__(self, run):
        self.run, self.config, self.findings = run, run.config, run.findings
        self.labels_file = "evaluation/" + self.files[2]
        self.members = 0
        self.is_specific = False
        self.unscored = 0  # samples without a label
        self.has_missing_member = False  # if True, the ensemble cannot be recomputed

    def has_ensemble(self):
        return self.members > 0 and not self.has_missing_member

    def add_unscored_finding(self, wanted):
        self.findings.add(self.labels_file,
                           f"number of unscored samples is {self.unscored}; must be {wanted}")
