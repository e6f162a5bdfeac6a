# SPDX-License-Identifier: Apache-2.0
"""The result directory of one run."""
from configuration import flatten, read_yaml, text_of as config_text
from json_reader import read_json
from record import check_record
from result_files import ResultFiles, check_manifest, sha256
from run import Run


def text_of(value, form):
    return "n/a" if value is None else format(value, form)


def result_line(record, manifest):
    """The RESULT line, the last of the summary."""
    scores, quality, topology = record["scores"], record["quality"], record["topology"]
    problem_class = record["workload"]["problem_class"]
    problem = record["workload"]["kind"] + ("" if problem_class == "official" else f"-{problem_class}")
    return (f"RESULT {record['verdict']['status']}  workload={problem} "
            f"M={topology['groups']} P={topology['degree']} FLOPS={text_of(scores['flops'], '.3e')} "
            f"VFLOPS={text_of(scores['vflops'], '.3e')} quality={text_of(quality['ensemble'], '.4f')} "
            f"target={quality['target']:.4f} manifest={manifest}")


def check_summary(files, record, manifest):
    def compare(key, stored, expected, source=""):
        files.findings.must_be("summary.txt", key, stored, expected, source)

    text = files.text("summary.txt")
    body, mark, digest = text.rpartition("manifest=")
    compare("its last line", text.rstrip("\n").split("\n")[-1], result_line(record, manifest),
            "result.json and manifest.sha256")
    compare("the text after the last manifest=", digest, manifest + "\n")
    compare("its SHA-256 up to the last manifest=", sha256((body + mark + "\n").encode()),
            record["summary_sha256"], "result.json")


def check_copies(files, record):
    """Files that result.json also contains."""
    findings = files.findings
    environment = findings.attempt(read_json, files, "environment.json")
    if environment is not None:
        findings.must_be("environment.json", "the environment", environment, record.get("environment"),
                         "result.json")


def check_yaml(files, config):
    """Compares config.yaml with config in result.json."""
    stored = read_yaml(files.text("config.yaml"))
    for key in sorted(stored.keys() | config.keys()):
        old, new = stored.get(key), config.get(key)
        if old != new or isinstance(old, bool) != isinstance(new, bool):  # 1 == True
            files.findings.must_be("config.yaml", key, stored.get(key), config.get(key), "result.json")


def check_run(findings):
    """(the record as stored or None, the manifest's SHA-256 or "")."""
    files = ResultFiles(findings.directory, findings)
    manifest = findings.attempt(check_manifest, files) or ""
    record = findings.attempt(read_json, files, "result.json")
    if record is not None:
        check_copies(files, record)
        findings.attempt(check_summary, files, record, manifest)
        config = findings.attempt(lambda: flatten(record["config"]))
        if config is not None:
            findings.attempt(check_yaml, files, config)
            texts = {key: config_text(value) for key, value in config.items()}
            findings.attempt(check_record, Run(files, record, texts))
    return record, manifest
