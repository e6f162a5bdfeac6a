// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <hpcai/base/run_record.hpp>
#include <hpcai/verification/verify.hpp>

namespace hpcai::results {

/// What people read of the result in `directory`: the texts of report.html and of
/// mllog/result_<m>.txt of each group, by path relative to it. Of the directory only the groups'
/// steps.csv are read; where one is missing or damaged, the page says so. Throws Error(usage) when
/// the record's configuration is none of this version's, Error(data) for a time that is none.
std::map<std::string, std::string> render_report_files(const std::filesystem::path& directory,
                                                       const RunRecord& record);

/// Writes these files into `directory`.
void write_report_files(const std::filesystem::path& directory, const RunRecord& record);

/// The record in `directory`/result.json. Throws Error(usage) where there is none, Error(data) as
/// report::from_json.
RunRecord read_result(const std::filesystem::path& directory);

/// Makes the files of a finished result anew from its record. Throws Error(usage), and writes
/// nothing, where `directory`/manifest.sha256 does not list these very files: a result stays as it
/// was sealed.
void renew_report_files(const std::filesystem::path& directory);

/// As verification::verify, and the page and the logs against these files. Throws as it does.
verification::Verification verify_result(const std::filesystem::path& directory);

}  // namespace hpcai::results
