# SPDX-License-Identifier: Apache-2.0
"""Tasks whose predictions are rows of class probabilities."""
import array
import bisect
import math
import operator

from arrays import read_npy
from findings import MalformedFile
from task import Task


SUM_TOLERANCE = 1e-3  # of the probabilities of a row


def predicted_class(row):
    """The class with the highest score, the lowest class in a tie; None if a score is NaN."""
    if any(map(math.isnan, row)):
        return None
    return row.index(max(row))


class ProbabilityTask(Task):
    """Predictions are f32 arrays (rows, classes), where a sample has `cells` rows.

    A subclass defines score_member(values), score_ensemble(values, majority) and members_interval.
    """

    files = ("predictions.npy", "ensemble.npy", "labels.npy")
    row_name = "sample"

    def __init__(self, run, cells, classes):
        super().__init__(run)
        self.samples = run.record["workload"]["validation_samples"]
        self.classes, self.rows = classes, self.samples * cells
        self.labels, self.labels_sha256 = read_npy(run.files, self.labels_file, "i", (self.rows,))
        self.unscored = self.count_unscored(cells)
        if self.unscored and self.config["data.on_bad_sample"] != "skip":
            self.add_unscored_finding("0, according to data.on_bad_sample")
        *names, _ = run.files.text("evaluation/samples.txt").split("\n")
        if len(names) != self.samples:
            self.findings.add("evaluation/samples.txt",
                               f"number of lines is {len(names)}; must be {self.samples}, one per sample")
        elif self.config["data.kind"] == "image_folder":
            self.check_folders(names)
        self.by_majority = self.config["bagging.aggregation"] == "majority"
        self.sums = array.array("f", bytes(4 * self.rows * classes))
        self.votes = array.array("f", bytes(4 * self.rows * classes))
        self.member_values = []

    def count_unscored(self, cells):
        """The number of samples without a label. A sample has labels in all of its rows or in none."""
        unscored = 0
        for sample in range(self.samples):
            absent = self.labels[sample * cells:(sample + 1) * cells].count(-1)
            unscored += absent > 0
            if 0 < absent < cells:
                self.findings.add(
                    self.labels_file, f"sample {sample} has {absent} unscored of {cells} cells; "
                                      "must have none or all")
                break
        return unscored

    def check_folders(self, names):
        """Checks that samples have the class of their folder. The loader numbers the folders by name."""
        folders, first = [], {}  # sorted; folder -> its first label
        for sample, (name, label) in enumerate(zip(names, self.labels)):
            if label == -1:
                continue
            folder = name.partition("/")[0].encode()
            if folder not in first:
                bisect.insort(folders, folder)
                first[folder] = label
            index = bisect.bisect_left(folders, folder)
            around = [first[other] for other in folders[max(index - 1, 0):index + 2]]
            if first[folder] != label or any(a >= b for a, b in zip(around, around[1:])):
                self.findings.add(self.labels_file, f"label of sample {sample} is {label}, which is not the class of its "
                                                     f"folder {folder.decode(errors='replace')}")
                return

    def check_rows(self, name, values):
        """Adds a finding for the first row that is no probability distribution.

        A softmax of non-finite outputs is NaN for all classes. Returns whether a value lies between 0
        and 1, where two models differ.
        """
        is_specific = False
        for index in range(self.rows):
            row = self.row(values, index)
            if all(map(math.isnan, row)):
                continue
            if not (min(row) >= 0 and abs(math.fsum(row) - 1) <= SUM_TOLERANCE):
                self.findings.add(name, f"{self.row_name} {index} has the minimum {min(row)} and the sum {sum(row)}; "
                                         "must be probabilities: 0 or more with sum 1")
                return False
            is_specific = is_specific or any(0 < value < 1 for value in row)
        return is_specific

    def scored_rows(self):
        """(row, label) of each row with a label."""
        for row, label in enumerate(self.labels):
            if label == -1:
                continue
            if not 0 <= label < self.classes:
                raise MalformedFile(f"{self.labels_file}: {self.row_name} {row} has the label {label}")
            yield row, label

    def row(self, values, index):
        return values[index * self.classes:(index + 1) * self.classes]

    def read(self, name):
        return read_npy(self.run.files, name, "f", (self.rows, self.classes))

    def add_member(self, name):
        values, digest = self.read(name)
        for row in range(self.rows):
            choice = predicted_class(self.row(values, row))
            if choice is not None:
                self.votes[row * self.classes + choice] += 1
        self.sums = array.array("f", map(operator.add, self.sums, values))
        self.members += 1
        self.member_values.append(values)
        self.is_specific = self.check_rows(name, values)
        return self.score_member(values), digest

    def mean(self):
        return array.array("f", (value / self.members for value in self.sums))

    def majority(self):
        """Each class's share of the members' votes; NaN in rows without a vote."""
        shares = array.array("f")
        for row in range(self.rows):
            votes = self.row(self.votes, row)
            shares.extend(count / self.members if any(votes) else math.nan for count in votes)
        return shares

    def check_ensemble(self, name, stored, combined):
        # MPI chooses the order of a sum over three and more ranks.
        allowed = 0 if self.members < 3 else self.members * 2.0 ** -23
        for index, (value, wanted) in enumerate(zip(stored, combined)):
            if math.isnan(value) and math.isnan(wanted) or abs(value - wanted) <= allowed:
                continue
            row, label = divmod(index, self.classes)
            self.findings.add(name, f"{self.row_name} {row}, class {label} is {value}; "
                                     f"must be {wanted}, according to groups/*/predictions.npy")
            return

    def ensemble(self):
        name = "evaluation/ensemble.npy"
        stored, digest = self.read(name)
        majority = self.majority()
        self.check_ensemble(name, stored, majority if self.by_majority else self.mean())
        numbers, interval = self.score_ensemble(stored, stored if self.by_majority else majority)
        return numbers, digest, interval
