#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/release.sh makes a source archive of a small clone with the files that it reads."""
import hashlib
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
FILES = ("CMakeLists.txt", "CITATION.cff", "docs/CHANGELOG.md", "cmake/commit.txt", ".gitattributes",
         "scripts/release.sh", "scripts/usage.sh")


class Release(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "out"
        self.clone = pathlib.Path(folder.name) / "clone"
        for name in FILES:
            (self.clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.clone / name)
        self.git("init", "--quiet")
        self.commit()

    def git(self, *words):
        return subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.clone, check=True,
            capture_output=True, text=True).stdout.strip()

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "all")

    def release(self):
        return subprocess.run([self.clone / "scripts/release.sh", self.out], capture_output=True,
                              text=True, check=False)

    def expect_refused(self, message):
        done = self.release()
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(message, done.stderr)
        self.assertFalse(self.out.exists())

    def test_archives_the_commit_with_its_number_and_its_digest(self):
        done = self.release()
        self.assertEqual(done.returncode, 0, done.stderr)
        archive, checksum = sorted(self.out.iterdir())
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        self.assertEqual(checksum.read_text(), f"{digest}  {archive.name}\n")
        with tarfile.open(archive) as tar:
            top = archive.name.removesuffix(".tar.gz")
            self.assertRegex(top, r"^hpcai500-\d+\.\d+\.\d+$")
            names = {member.name for member in tar.getmembers() if member.isfile()}
            self.assertEqual(names, {f"{top}/{name}" for name in FILES})
            commit = tar.extractfile(f"{top}/cmake/commit.txt").read().decode().strip()
        self.assertEqual(commit, self.git("rev-parse", "HEAD"))
        first = archive.read_bytes()
        self.assertEqual(self.release().returncode, 0)
        self.assertEqual(archive.read_bytes(), first)

    def test_refuses_changes_that_are_not_committed(self):
        (self.clone / "new.txt").write_text("x")
        self.expect_refused("?? new.txt")

    def test_refuses_a_version_that_a_file_does_not_have(self):
        version = re.search(r"hpcai500 VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        for name in "CITATION.cff", "docs/CHANGELOG.md":
            with self.subTest(name):
                path = self.clone / name
                text = path.read_text()
                path.write_text(text.replace(version, "7.8.9"))
                self.commit()
                self.expect_refused(
                    f"{name}: expected version {version} as in CMakeLists.txt, got '7.8.9'")
                path.write_text(text)
                self.commit()


if __name__ == "__main__":
    unittest.main()
