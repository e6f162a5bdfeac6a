// SPDX-License-Identifier: Apache-2.0
#include "result_files.hpp"

#include <exception>
#include <iostream>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/report_files.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/results/run_output.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/npy.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/search.hpp>
#include <hpcai/verification/verify.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::benchmark {
namespace {

/// Writes labels and names of the hold-out samples, on which a search compared its trials.
void write_hold_out(const results::LaunchedRun& run) {
    if (run.samples.hold_out == nullptr) return;
    const data::SampleSet& samples = *run.samples.hold_out;
    std::vector<std::int32_t> labels;
    std::string names;
    for (std::uint32_t sample = 0; sample < samples.samples(); ++sample) {
        labels.push_back(samples.label(sample));
        names += samples.name(sample) + "\n";
    }
    storage::write_npy(run.context.output / verification::kHoldOutLabels,
                       std::span<const std::int32_t>(labels), {samples.samples()});
    storage::write_file_durably(run.context.output / verification::kHoldOutNames, names);
}

/// Removes the weights of a search's trials. Only later trials would inherit from them.
void remove_trial_weights(const context::RunContext& context) {
    for (int group = 0; group < context.controller.layout().groups; ++group) {
        const auto folder = results::trial_weights(context.output, group, 0).parent_path();
        std::error_code error;
        for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
             entry.increment(error)) {
            if (entry->path().extension() == ".safetensors")
                std::filesystem::remove(entry->path(), error);
        }
    }
}

/// Writes all files of the result. Returns the manifest's SHA-256.
std::string write_files(const results::LaunchedRun& run, const results::EnsembleResult& ensemble,
                        RunRecord& record, Origin origin) {
    const context::RunContext& context = run.context;
    const auto evaluation = context.output / "evaluation";
    std::error_code error;
    std::filesystem::remove(context.output / "checkpoints", error);  // only if it is empty
    if (!ensemble.members.empty()) {
        workloads::make_evaluator(context.config, run.samples)
            ->store(ensemble.predictions, evaluation);
        const workloads::PredictionFiles& files =
            workloads::workload_of(context.config.workload).files;
        record.quality.ensemble_sha256 = storage::sha256_hex_of_file(evaluation / files.ensemble);
        record.quality.labels_sha256 = storage::sha256_hex_of_file(evaluation / files.labels);
    }
    if (!ensemble.members.empty()) write_hold_out(run);
    record.summary_sha256 = verification::summary_digest(record);
    if (origin == Origin::stored_groups) verification::require_verified(context.output, record);
    storage::write_file_durably(context.output / "environment.json",
                                records::environment_to_json(record.environment));
    storage::write_file_durably(context.output / "result.json", records::to_json(record));
    results::write_report_files(context.output, record);
    results::remove_progress(context.output);
    const bool is_complete =
        std::cmp_equal(ensemble.members.size(), context.controller.layout().groups);
    for (const GroupResult& member : ensemble.members) {
        if (context.config.run.keep_weights || !is_complete) break;  // resume may need the weights
        std::filesystem::remove(results::group_directory(context.output, member.record.group) /
                                "weights.safetensors");
    }
    if (is_complete) remove_trial_weights(context);
    const std::string manifest =
        storage::make_manifest(context.output, verification::unlisted_files());
    const std::string digest = storage::sha256_hex(storage::bytes_of(manifest));
    storage::write_file_durably(context.output / report::kSummaryName,
                                report::summary(record, digest));
    storage::write_file_durably(context.output / storage::kManifestName, manifest);
    return digest;
}

}  // namespace

results::EnsembleResult combine_members(const workloads::Evaluator& evaluator,
                                        const group::GroupOutcome& member,
                                        comm::Communicator& leaders) {
    const Stopwatch watch;
    results::EnsembleResult ensemble;
    for (const std::string& text : comm::gather_strings(leaders, records::to_json(member.result))) {
        ensemble.members.push_back(records::from_json<GroupResult>(text, "record.json"));
    }
    ensemble.predictions = evaluator.combine(member.predictions, leaders, ensemble.quality);
    ensemble.seconds = watch.seconds();
    return ensemble;
}

RunRecord write_result(const results::LaunchedRun& run, const results::EnsembleResult& ensemble,
                       const results::RunOutcome& outcome, Origin origin, std::ostream& out) {
    RunRecord record = results::make_record(run, ensemble, outcome);
    const context::RunContext& context = run.context;
    std::ostream& text = results::text_stream(context.config, out);
    const auto print_event = [&](const std::string& manifest) {
        if (&text == &out) return;
        out << results::event_line("result", context.output, context.launch.repetition_or_zero(),
                                   report::result_json(record, manifest))
            << std::flush;
    };
    std::string manifest = "none";
    try {
        manifest = write_files(run, ensemble, record, origin);
    } catch (const std::exception&) {
        if (origin == Origin::this_run) {
            print_event(manifest);
            text << report::summary(record, manifest) << std::flush;
        }
        throw;
    }
    print_event(manifest);
    const std::string summary = report::summary(record, manifest);
    const std::string directory = shell_quote(context.output.string());
    const std::size_t last_line = summary.rfind('\n', summary.size() - 2) + 1;
    text << summary.substr(0, last_line);
    if (printable(directory) == directory) {
        text << fmt::format(
            "report: {0}/report.html\ncheck: hpcai500 verify {0}\n"
            "compare: hpcai500 compare {0} DIR\n",
            directory);
    }
    text << summary.substr(last_line) << std::flush;
    return record;
}

}  // namespace hpcai::benchmark
