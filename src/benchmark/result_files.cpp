// SPDX-License-Identifier: Apache-2.0
#include "result_files.hpp"

#include <exception>
#include <ostream>
#include <system_error>

#include <hpcai/context/run_context.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/report_files.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::benchmark {
namespace {

/// Writes all files that the manifest lists, and the manifest. Returns its SHA-256.
std::string write_files(const results::LaunchedRun& run, const EnsembleResult& ensemble,
                        RunRecord& record) {
    const context::RunContext& context = run.context;
    const auto evaluation = context.output / "evaluation";
    std::error_code error;
    std::filesystem::remove(context.output / "checkpoints", error);  // unless a group needs its own
    if (!ensemble.score.members.empty()) {
        workloads::make_evaluator(context.config, run.samples)
            ->store(ensemble.predictions, evaluation);
        const workloads::PredictionFiles& files =
            workloads::workload_of(context.config.workload).files;
        record.quality.ensemble_sha256 = storage::sha256_hex_of_file(evaluation / files.ensemble);
        record.quality.labels_sha256 = storage::sha256_hex_of_file(evaluation / files.labels);
    }
    storage::write_file_durably(context.output / "environment.json",
                                records::environment_to_json(record.environment));
    record.summary_sha256 = verification::summary_digest(record);
    storage::write_file_durably(context.output / "result.json", records::to_json(record));
    results::write_report_files(context.output, record);
    results::remove_progress(context.output);
    return storage::write_manifest(context.output, {report::kSummaryName, "checkpoints/"});
}

}  // namespace

WrittenResult write_result(const results::LaunchedRun& run, const EnsembleResult& ensemble,
                           const results::Closing& closing, std::ostream& out) {
    WrittenResult result{results::make_record(run, ensemble.score, closing), "none"};
    std::exception_ptr failure;
    try {
        result.manifest = write_files(run, ensemble, result.record);
    } catch (const std::exception&) {
        failure = std::current_exception();
    }
    const std::string summary = report::summary(result.record, result.manifest);
    out << summary << std::flush;  // whatever has become of the files
    if (failure) std::rethrow_exception(failure);
    storage::write_file_durably(run.context.output / report::kSummaryName, summary);
    return result;
}

}  // namespace hpcai::benchmark
