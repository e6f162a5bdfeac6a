// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <hpcai/records/run_record.hpp>
#include <hpcai/workloads/inspector.hpp>

namespace hpcai::verification {

using workloads::Finding;

struct Verification {
    std::string manifest;             // SHA-256 of manifest.sha256; empty if it cannot be read
    std::vector<Finding> findings;    // empty if the result is correct
    std::vector<std::string> files;   // the files that were checked
    std::optional<RunRecord> record;  // as stored; empty if result.json cannot be read
    std::string agreed;               // from verify_with_data(): what agrees with the data
};

/// Verifies the result in `directory`: its files against the manifest, the format of each file that
/// it parses, and every number that follows from steps, predictions or weights. docs/METRICS.md
/// ("Verification") lists the checks and the tolerances; without a tolerance, numbers must be equal
/// bit for bit. Uses neither MPI nor a device. Throws Error(usage) if there is no such directory.
Verification verify(const std::filesystem::path& directory);

/// Returns the files that manifest.sha256 does not list, as patterns of storage::matches_any(): the
/// summary, which has the manifest's digest, and files of groups that may still run or be resumed.
std::set<std::string> unlisted_files();

/// Returns "; runs inside, newest first: a/run-2, a/run-1" with up to three runs in `folder`,
/// finished or not; empty if it contains none. Callers append it to the error that `folder` itself
/// is not a result. Escapes control characters.
std::string describe_runs_inside(const std::filesystem::path& folder);

/// Returns a JUnit report (XML) with a test case for each file that was checked or has findings. A
/// case fails with its findings, if any. `name` names the result; `explain` is that of
/// Finding::shown.
std::string to_junit(const std::string& name, const Verification& verification, bool explain);

/// Verifies a `record` before it is stored. Compares it with the files of its groups and of
/// evaluation/ in `directory`. Throws Error(mismatch) with the first finding.
void require_verified(const std::filesystem::path& directory, const RunRecord& record);

}  // namespace hpcai::verification
