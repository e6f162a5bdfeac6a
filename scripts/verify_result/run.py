# SPDX-License-Identifier: Apache-2.0
"""The data that all checks of one run share."""


class Run:
    """The files of a result directory, its record (result.json) and its configuration."""

    def __init__(self, files, record, config):
        self.files, self.record, self.config = files, record, config
        self.findings = files.findings
        self.owners = {}  # digest of weights or predictions -> the first group that has it
        self.counters = {}  # group -> counters that a finished group has read on its nodes

    def must_be(self, key, stored, expected, source=""):
        self.findings.must_be("result.json", key, stored, expected, source)

    def attempt(self, function, *arguments):
        return self.findings.attempt(function, *arguments)

    def places_of(self, group):
        """Rows of topology.map."""
        return [place for place in self.record["topology"]["map"] if place["group"] == group]
