# SPDX-License-Identifier: Apache-2.0
"""Kills, full disks, unusual paths, data and settings, and files that must not be followed or copied."""
import os
import pathlib
import shutil
import signal
import stat
import struct
import subprocess
import time
import zlib

from forgery import Forgery
from rows import CAUGHT, row
from workspace import NotRun, require

VERIFIED = "result verifies"
LONG = ("workload.epochs=150", "run.checkpoint_steps=100")  # some seconds
WAIT_SECONDS = 60


def wait_for(condition, what):
    until = time.monotonic() + WAIT_SECONDS
    while not condition():
        require(time.monotonic() < until, f"{what}: not within {WAIT_SECONDS} s")
        time.sleep(0.1)


def start_long(workspace, name, *settings):
    """A run that is in its training when this returns."""
    process = workspace.start(*workspace.run_words(name, *LONG, *settings), ranks=2)
    wait_for(lambda: any((workspace.folder / name).glob("checkpoints/*/*/*.done")), f"the first checkpoint of {name}")
    return process


@row("kill", "SIGKILL to mpirun during training", VERIFIED)
def killed(workspace):
    process = start_long(workspace, "kill")
    process.kill()
    process.wait()
    wait_for(lambda: workspace.call("status", "kill") == 6 and "resume" in workspace.output, "the end of the ranks")
    workspace.expect(5, "score", "kill", text="resume")
    workspace.expect(0, "resume", "kill", ranks=2)
    return workspace.verify("kill")


@row("usr1", "SIGUSR1 to mpirun; resume with 1, 4 and 2 ranks", VERIFIED)
def stopped(workspace):
    process = start_long(workspace, "usr1")
    process.send_signal(signal.SIGUSR1)
    require(process.wait(WAIT_SECONDS) == 8, f"the stopped run ends with {process.returncode}")
    for ranks in (1, 4):
        workspace.expect(3, "resume", "usr1", ranks=ranks)
    workspace.expect(0, "resume", "usr1", ranks=2)
    return workspace.verify("usr1")


@row("removed", "the result directory removed during training", "code 2 or 5")
def removed(workspace):
    process = start_long(workspace, "removed")
    shutil.rmtree(workspace.folder / "removed")
    require(process.wait(WAIT_SECONDS) in (2, 5), f"the run ends with {process.returncode}")
    return ()


@row("gone", "data/train removed during training", "code 4")
def data_gone(workspace):
    shutil.copytree(workspace.folder / "data", workspace.folder / "gone-data")
    process = start_long(workspace, "gone", "data.path=gone-data/train")
    shutil.rmtree(workspace.folder / "gone-data/train")
    require(process.wait(WAIT_SECONDS) == 4, f"the run ends with {process.returncode}")
    return ()


@row("twice", "two runs with one --output at once", VERIFIED)
def two_runs(workspace):
    processes = [workspace.start(*workspace.run_words("twice"), ranks=2) for _ in range(2)]
    codes = sorted(process.wait(WAIT_SECONDS) for process in processes)
    require(codes == [0, 2], f"the runs end with {codes}")
    return workspace.verify("twice")


def run_on_disk(workspace, disk, size):
    """Runs on a file system of `size`, enlarges it and completes the result. Returns the run's code."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk], check=True)
    try:
        code = workspace.call(*workspace.run_words("disk/result"), ranks=2)
        if code != 0:
            require("No space left" in workspace.output, f"no reason for the end with {size}: {workspace.output}")
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        if code not in (0, 2) or (disk / "result/groups").exists():
            if workspace.call("score", "disk/result") != 0 and "has a result" not in workspace.output:
                workspace.expect(0, "resume", "disk/result", ranks=2)
            require(workspace.verify("disk/result") == (0, 0), f"the result of {size} does not verify")
        return code
    finally:
        subprocess.run(["umount", disk], check=True)


@row("disk", "results on a disk of 4 kB to 3.2 MB", "completed later")
def full_disk(workspace):
    disk = workspace.folder / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "none", disk], check=False).returncode:
        raise NotRun("needs root and tmpfs")
    subprocess.run(["umount", disk], check=True)
    codes = [run_on_disk(workspace, disk, size) for size in ("4k", "200k", "1800k", "3m", "3100k", "3200k")]
    require(codes[0] == 2 and 5 in codes, f"exit codes {codes}")
    return ()


def shell(workspace, line):
    """The exit code of a command line of bash, where $program is the program."""
    return workspace.call("-c", line, program="bash", environment={"program": str(workspace.program)})


ONE_RANK = "\"$program\" run --config tiny.yaml --set bagging.M=1"


@row("reader", "`hpcai500 run ... | head -1`", VERIFIED)
def closed_reader(workspace):
    shell(workspace, f"{ONE_RANK} --output reader | head -1")
    return workspace.verify("reader")


@row("full", "standard output is /dev/full", VERIFIED)
def full_output(workspace):
    require(shell(workspace, f"{ONE_RANK} --output full >/dev/full") == 2, "exit code is not 2")
    return workspace.verify("full")


@row("memory", "`ulimit -v`: a batch that does not fit", "names the key")
def no_memory(workspace):
    code = shell(workspace, f"ulimit -v 1500000; {ONE_RANK} --output memory --set training.batch_size=96 "
                            "--set workload.image_size=512 --set workload.backbone_width=64")
    require(code in (1, 5), f"exit code {code}: {workspace.output[-300:]}")
    require("training.batch_size" in workspace.output and "internal error" not in workspace.output,
            f"the error names no key: {workspace.output[-300:]}")
    return ()


@row("paths", "results below blanks, letters of Unicode, a line end and <>&\"", VERIFIED)
def unusual_paths(workspace):
    (workspace.folder / "trailing").mkdir()
    codes = set()
    for name in ("with blanks", "größe", "two\nlines", "<>&\"'", "trailing///", "x" * 200 + "/" + "y" * 200):
        workspace.expect(0, *workspace.run_words(name, "bagging.M=1"))
        codes.add(workspace.verify(name))
    require(codes == {(0, 0)}, f"exit codes {codes}")
    return codes.pop()


@row("outputs", "--output: a file, /proc/x, /etc, a dangling link, nothing, 4400 letters", "code 2")
def bad_outputs(workspace):
    (workspace.folder / "dangling").symlink_to("nowhere/below")
    for name in ("tiny.yaml", "/proc/x", "/etc", "dangling", "", "x" * 4400):
        workspace.expect(2, *workspace.run_words(name, "bagging.M=1"))
    return ()


@row("names", "class folders with a line end, or not in UTF-8", "code 4")
def class_names(workspace):
    for name, shown in ((b"two\nlines", "two\\nlines"), (b"caf\xe9", "caf\\xe9")):
        folder = workspace.folder / "names-data"
        shutil.copytree(workspace.folder / "data", folder)
        for split in ("train", "val"):
            classes = sorted((folder / split).iterdir())
            os.rename(classes[0], os.fsencode(folder / split) + b"/" + name)
        for ranks in (0, 2):
            workspace.expect(4, *workspace.run_words("names", "data.path=names-data/train", f"bagging.M={ranks or 1}",
                                                     "data.validation_path=names-data/val"), ranks=ranks, text=shown)
        shutil.rmtree(folder)
    return ()


@row("folders", "classes that differ, an empty class, no class", "code 4")
def bad_folders(workspace):
    def remove_class(folder):
        shutil.rmtree(sorted(folder.iterdir())[0])

    def empty_class(folder):
        for path in sorted(folder.iterdir())[0].iterdir():
            path.unlink()

    for spoil in (remove_class, empty_class, lambda folder: [shutil.rmtree(path) for path in folder.iterdir()]):
        folder = workspace.folder / "folders-data"
        shutil.copytree(workspace.folder / "data/val", folder)
        spoil(folder)
        workspace.expect(4, *workspace.run_words("folders", "bagging.M=1", "data.validation_path=folders-data"))
        shutil.rmtree(folder)
    return ()


def png():
    """A gray PNG of 40 x 40 pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 40, 40, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress((b"\0" + b"\x80" * 40) * 40)) + chunk(b"IEND", b""))


@row("pictures", "files named .jpg: PNG is read; cut, empty, HTML, GIF, a FIFO are not", "code 4")
def pictures(workspace):
    folder = workspace.folder / "pictures/a"
    folder.mkdir(parents=True)
    whole = next((workspace.folder / "data/val").glob("*/*.jpg")).read_bytes()
    (folder / "whole.jpg").write_bytes(whole)
    (folder / "png.jpg").write_bytes(png())
    os.mkfifo(folder / "fifo.jpg")
    workspace.expect(0, "data", "check", "pictures")
    for bad in (whole[:len(whole) // 2], b"", b"<html></html>", b"GIF89a" + bytes(99)):
        (folder / "bad.jpg").write_bytes(bad)
        workspace.expect(4, "data", "check", "pictures", text="bad.jpg")
    return ()


REFUSED = {  # setting: part of the message
    "workload.target_quality=1.0e-62": "1e200", "workload.epochs=\"1\"": "(a quoted value is a string)",
    "workload.epochs=0": "", "workload.epochs=01": "leading zeros", "workload.epochs=18446744073709551616": "",
    "training.learning_rate=nan": "", "training.learning_rate=1e999": "", "training.batch_size=-8": "",
    "run.name=../../x": "", "run.name=$(id)": "", "run.name=a\nb": "", "run.level=[custom]": "", "run.seed=null": "",
}


@row("settings", "values out of range, quoted, octal, too large, with a line end", "code 2")
def settings(workspace):
    for setting, part in REFUSED.items():
        workspace.expect(2, *workspace.run_words("settings", "bagging.M=1", setting), text=part)
        require(len(workspace.output.strip().splitlines()) == 1, f"{setting}: {workspace.output}")
    return ()


@row("diverged", "learning rate 1000", "code 5")
def diverged(workspace):
    workspace.expect(5, *workspace.run_words("diverged", "training.learning_rate=1000"), ranks=2, text="diverged")
    return workspace.verify("diverged")


PLANTED = '#include <stdio.h>\n__attribute__((constructor)) static void loaded(void) { fputs("PLANTED", stderr); }\n'
LIBRARIES = ("libjpeg.so.62", "libz.so.1", "libcrypto.so.3", "libyaml-cpp.so.0.7", "libcuda.so.1", "libmpi.so.40")


@row("libraries", "libraries in the working directory", "not loaded")
def planted_libraries(workspace):
    if not shutil.which("gcc"):
        raise NotRun("needs gcc")
    folder = workspace.folder / "libraries"
    folder.mkdir()
    (folder / "planted.c").write_text(PLANTED)
    for name in LIBRARIES:
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / name, folder / "planted.c"], check=True)
    workspace.expect(0, "--version", folder=folder)
    require("PLANTED" not in workspace.output, "a planted library was loaded")
    return ()


@row("outside", "a file outside the directory in manifest.sha256", CAUGHT)
def manifest_path(workspace):
    forged = Forgery(workspace.copy("outside"))
    path = forged.directory / "manifest.sha256"
    path.write_text(f"{'0' * 64}  ../../../etc/passwd\n" + path.read_text())
    return workspace.verify(forged.directory)


@row("links", "a symbolic link or a FIFO for a file of a result", CAUGHT)
def links(workspace):
    codes = set()
    for name, replace in (("link", lambda path: path.symlink_to(workspace.folder / "genuine" / "summary.txt")),
                          ("fifo", os.mkfifo)):
        directory = workspace.copy(name)
        (directory / "groups/0/predictions.npy").unlink()
        replace(directory / "groups/0/predictions.npy")
        codes.add(workspace.verify(directory))
    require(codes == {(10, 10)}, f"exit codes {codes}")
    return codes.pop()


@row("victim", "`score` with evaluation -> another folder", "refused")
def linked_evaluation(workspace):
    forged = workspace.forge("linked")
    victim = workspace.folder / "victim"
    victim.mkdir()
    (victim / "ensemble.npy").write_text("untouched")
    (forged.directory / "evaluation").symlink_to(victim)
    require(workspace.call("score", "linked") != 0, "score accepts a link")
    require((victim / "ensemble.npy").read_text() == "untouched" and len(list(victim.iterdir())) == 1,
            "score writes through a link")
    return ()


@row("umask", "umask 077: no file is readable by others", VERIFIED)
def private_files(workspace):
    require(shell(workspace, f"umask 077; {ONE_RANK} --output umask") == 0, "the run fails")
    for path in pathlib.Path(workspace.folder / "umask").rglob("*"):
        require(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, f"{path} is readable by others")
    return workspace.verify("umask")


@row("secrets", "tokens in environment variables are in no file", VERIFIED)
def secrets(workspace):
    names = ("TOKEN", "AWS_SECRET_ACCESS_KEY", "SLURM_JOB_TOKEN", "NCCL_SECRET", "OMPI_MCA_secret")
    workspace.expect(0, *workspace.run_words("secrets", "bagging.M=1"),
                     environment={name: "s3cr3t-value" for name in names})
    for path in pathlib.Path(workspace.folder / "secrets").rglob("*"):
        require(not path.is_file() or b"s3cr3t-value" not in path.read_bytes(), f"{path} contains a token")
    return workspace.verify("secrets")
