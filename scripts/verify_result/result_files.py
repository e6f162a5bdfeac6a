# SPDX-License-Identifier: Apache-2.0
"""Files of a result directory and the manifest that lists them."""
import hashlib
import os
import re

from findings import MalformedFile


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class ResultFiles:
    """Regular files present when the check starts. Symbolic links are not followed."""

    def __init__(self, directory, findings):
        self.directory = directory
        self.findings = findings
        self.present, self.regular = set(), set()
        self.list_files()

    def list_files(self):
        def add_error(error):
            self.findings.add(os.path.relpath(error.filename, self.directory),
                               f"cannot be listed: {error.strerror}")

        for folder, folders, files in os.walk(self.directory, onerror=add_error):
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            for name in files + links:
                path = os.path.join(folder, name)
                self.present.add(os.path.relpath(path, self.directory))
                if os.path.isfile(path) and not os.path.islink(path):
                    self.regular.add(os.path.relpath(path, self.directory))

    def read(self, name, max_bytes=1 << 30):
        if name not in self.present:
            raise MalformedFile(f"{name}: is missing")
        if name not in self.regular:
            raise MalformedFile(f"{name}: is not a regular file")
        path = os.path.join(self.directory, name)
        if os.path.getsize(path) > max_bytes:
            raise MalformedFile(f"{name}: has {os.path.getsize(path)} bytes; must have at most {max_bytes}")
        with open(path, "rb") as file:
            return file.read()

    def text(self, name):
        try:
            return self.read(name).decode("utf-8")
        except UnicodeDecodeError as error:
            raise MalformedFile(f"{name}: is not UTF-8: {error}") from error

    def digest(self, name):
        """SHA-256 of a file of any size."""
        hashed = hashlib.sha256()
        with open(os.path.join(self.directory, name), "rb") as file:
            while piece := file.read(1 << 22):
                hashed.update(piece)
        return hashed.hexdigest()


def parse_manifest_line(number, line):
    """(name, digest) of a line as sha256sum writes it."""
    match = re.fullmatch(r"(\\?)([0-9a-f]{64})  (.+)", line, re.DOTALL)
    if not match or (match[1] == "\\") != ("\\" in match[3]) or "\r" in line:
        raise MalformedFile(f"manifest.sha256: line {number} is not in the program's format")
    name = match[3]
    if match[1]:
        name = re.sub(r"\\([\\nr])", lambda m: {"n": "\n", "r": "\r"}.get(m[1], m[1]), name)
    if os.path.normpath(name) != name:
        raise MalformedFile(f"manifest.sha256: line {number} has a path that the program does not write")
    return name, match[2]


def is_listable(name):
    if name in ("manifest.sha256", "summary.txt") or name.startswith("checkpoints/"):
        return False
    return not re.fullmatch(r"groups/[^/]*/trials/(\.[^/]*|[^/]*\.safetensors)", name)


def check_listed_file(files, name, digest):
    add = files.findings.add
    if name not in files.present or not is_listable(name):
        add(name, "is missing; manifest.sha256 lists it")
    elif name not in files.regular:
        add(name, "is not a regular file; manifest.sha256 lists one")
    elif (stored := files.digest(name)) != digest:
        add(name, f"has the SHA-256 {stored}; must have {digest}, as manifest.sha256 lists it")


def check_manifest(files):
    """Checks all files against the manifest; returns the SHA-256 of the manifest."""
    add = files.findings.add
    data = files.read("manifest.sha256")
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    if lines.pop() != "":
        add("manifest.sha256", "does not end with a newline")
    rows = [parse_manifest_line(number, line) for number, line in enumerate(lines, 1)]
    names = [os.fsencode(name) for name, _ in rows]
    if names != sorted(set(names)):
        add("manifest.sha256", "lists a file twice or not in the order of the names")
    listed = dict(rows)
    for name, digest in sorted(listed.items()):
        check_listed_file(files, name, digest)
    for name in sorted(filter(is_listable, files.present - listed.keys())):
        add(name, "exists; manifest.sha256 does not list it")
    return sha256(data)
