// SPDX-License-Identifier: Apache-2.0
#include "result_files.hpp"

#include <exception>
#include <ostream>
#include <system_error>

#include <hpcai/benchmark/report_files.hpp>
#include <hpcai/report/json.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/judge.hpp>

#include "progress_file.hpp"
#include "run_context.hpp"

namespace hpcai::benchmark {
namespace {

/// All that the manifest lists, and the manifest; returns its SHA-256.
std::string write_files(const Start& start, const Vote& vote, RunRecord& record) {
    const auto evaluation = start.output / "evaluation";
    std::error_code error;
    std::filesystem::remove(start.output / "checkpoints", error);  // unless a group needs its own
    if (!vote.members.empty()) {
        make_workload(start)->store(vote.predictions, evaluation);
        const auto files = verification::prediction_files(start.config.workload);
        record.quality.ensemble_sha256 = storage::sha256_hex_of_file(evaluation / files.ensemble);
        record.quality.labels_sha256 = storage::sha256_hex_of_file(evaluation / files.labels);
    }
    storage::write_file_durably(start.output / "environment.json",
                                report::environment_to_json(record.environment));
    record.summary_sha256 = verification::summary_digest(record);
    storage::write_file_durably(start.output / "result.json", report::to_json(record));
    write_report_files(start.output, record);
    remove_progress(start.output);
    return storage::write_manifest(start.output, {report::kSummaryName, "checkpoints/"});
}

}  // namespace

WrittenResult write_result(const Start& start, const Vote& vote, const Closing& closing,
                           std::ostream& out) {
    WrittenResult result{make_record(start, vote, closing), "none"};
    std::exception_ptr failure;
    try {
        result.manifest = write_files(start, vote, result.record);
    } catch (const std::exception&) {
        failure = std::current_exception();
    }
    const std::string summary = report::summary(result.record, result.manifest);
    out << summary << std::flush;  // whatever has become of the files
    if (failure) std::rethrow_exception(failure);
    storage::write_file_durably(start.output / report::kSummaryName, summary);
    return result;
}

}  // namespace hpcai::benchmark
