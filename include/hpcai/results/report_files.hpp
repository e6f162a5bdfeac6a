// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <hpcai/records/run_record.hpp>
#include <hpcai/verification/verify.hpp>

namespace hpcai::results {

/// Returns the texts of report.html and of each group's mllog/result_<m>.txt, by path relative to
/// `directory`. Reads only evaluation/ and the groups' steps.csv there. The page names damaged
/// steps.csv files, omits results from other missing or damaged files, and links stored files of
/// the run and of its first groups. Throws Error(usage) if this version rejects the record's
/// configuration, Error(data) for an invalid time.started_utc.
std::map<std::string, std::string> render_report_files(const std::filesystem::path& directory,
                                                       const RunRecord& record);

/// Writes the files of render_report_files into `directory`.
void write_report_files(const std::filesystem::path& directory, const RunRecord& record);

/// Reads `directory`/result.json. Throws as verification::require_result() if there is none, and
/// Error(data) like records::from_json.
RunRecord read_result(const std::filesystem::path& directory);

/// Writes the files of render_report_files again, and a missing summary if there is a manifest.
/// Throws Error(usage) and writes nothing if `directory`/manifest.sha256 has another digest of a
/// rendered file.
void rerender_report_files(const std::filesystem::path& directory);

/// Verifies and throws like verification::verify; also compares report.html and mllog/.
verification::Verification verify_result(const std::filesystem::path& directory);

}  // namespace hpcai::results
