// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <hpcai/base/text.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/records/launch_record.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/verify.hpp>
#include <hpcai/workloads/workload.hpp>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

constexpr const char* kResult = "result.json";

/// Returns whether the run has begun but has no result.
bool is_unfinished(const Inspector& inspector) {
    return inspector.has(kLaunchName) && !inspector.has(kResult) &&
           !inspector.has(storage::kManifestName);
}

/// Reports the first line of `file` that differs from `expected`.
void check_text(const std::string& file, const std::string& expected, Inspector& inspector) {
    if (const auto text = inspector.read_text(file)) inspector.compare_lines(file, *text, expected);
}

/// Checks numbers that are used before verify() compares them.
void check_ranges(const WorkloadRecord& workload) {
    constexpr std::int64_t kMaxSamples = std::int64_t{1} << 31;
    for (const auto& [name, samples] :
         {std::pair{"training_samples", workload.training_samples},
          std::pair{"validation_samples", workload.validation_samples}}) {
        require(samples >= 0 && samples <= kMaxSamples, ExitCode::data,
                "workload.{} is {}; must be 0 to {}", name, samples, kMaxSamples);
    }
}

plan::ParallelismController controller_of(const RunRecord& record, const config::Config& config) {
    check_ranges(record.workload);
    const TopologyRecord& topology = record.topology;
    const std::size_t ranks = topology.map.size();
    require(ranks > 0 && static_cast<std::size_t>(topology.ranks) == ranks, ExitCode::data,
            "topology.ranks is {}; must be {}, the length of topology.map", topology.ranks, ranks);
    std::vector<int> nodes;
    for (const PlaceRecord& place : topology.map) {
        require(place.node >= 0 && static_cast<std::size_t>(place.node) < ranks, ExitCode::data,
                "topology.map has a node {}; must be 0 to {}", place.node, ranks - 1);
        nodes.push_back(place.node);
    }
    plan::ParallelismController controller = place_ranks(config, nodes);
    const int groups = controller.layout().groups;
    require(std::cmp_equal(record.work.groups.size(), groups), ExitCode::data,
            "work.groups has {} groups; must have {}, according to config",
            record.work.groups.size(), groups);
    return controller;
}

std::string source_of(const std::string& key, const config::Config& config) {
    const workloads::PredictionFiles& files = workloads::workload_of(config.workload).files;
    struct Source {
        std::string prefix, text;
    };
    const std::vector<Source> sources{
        {"work.groups[", "according to groups/<m>/record.json and the files that it follows from"},
        {"training_digest[", "according to groups/<m>/weights.safetensors"},
        {"quality.members", "according to groups/<m>/" + files.member},
        {"quality.ensemble_sha256", "the SHA-256 of evaluation/" + files.ensemble},
        {"quality.labels_sha256", "the SHA-256 of evaluation/" + files.labels},
        {"quality.target", "according to config"},
        {"quality.exponent", "according to config"},
        {"quality.",
         "according to evaluation/" + files.ensemble + " and evaluation/" + files.labels},
        {"energy.", "according to the counters in groups/<m>/record.json"},
        {"verdict.", "according to docs/RULES.md"},
        {"submission.", "according to config"},
        {"topology.", "according to config and topology.map"},
        {"workload.", "according to config"},
        {"parameters[", "according to config"},
        {"flops.", "according to the model's layers"},
        {"name", "according to config"},
        {"config", "as the program writes it"},
    };
    for (const Source& source : sources) {
        if (key.starts_with(source.prefix)) return source.text;
    }
    return "according to the groups' results";
}

void check_numbers(const RunRecord& record, const config::Config& config, Inspector& inspector) {
    const auto controller =
        inspector.attempt(kResult, [&] { return controller_of(record, config); });
    if (!controller) return;
    const Claim claim{record, config, *controller};
    const bool any_finished = std::ranges::any_of(
        record.work.groups, [](const GroupRecord& group) { return group.failure.empty(); });
    const workloads::Workload& workload = workloads::workload_of(config.workload);
    const auto predictions =
        any_finished ? workload.make_check({config, record.workload.validation_samples, inspector})
                     : nullptr;
    const std::vector<GroupResult> groups = check_groups(claim, predictions.get(), inspector);
    const bool has_metric = record.quality.metric.index() == workload.metric.index();
    QualityRecord quality =
        any_finished && has_metric
            ? record.quality
            : workloads::missing_quality(
                  workload.metric, any_finished ? "the result names the metric of another workload"
                                                : "no group finished");
    if (any_finished) predictions->finish(quality);
    inspector.compare_keys(kResult, records::to_json(record),
                           records::to_json(recompute(claim, groups, quality)),
                           [&](const std::string& key) { return source_of(key, config); });
}

void check_file(const std::string& name, const std::string& listed, Inspector& inspector) {
    if (!inspector.entries().at(name)) {
        inspector.report(name, "is not a regular file; {} lists one", storage::kManifestName);
        return;
    }
    inspector.attempt(name, [&] {
        const std::string digest = storage::sha256_hex_of_file(inspector.checked_path(name));
        if (digest != listed) {
            inspector.report(name, "has the SHA-256 {}; must have {}, as {} lists it", digest,
                             listed, storage::kManifestName);
        }
    });
}

}  // namespace

std::string check_manifest(Inspector& inspector) {
    const auto text = inspector.read_text(storage::kManifestName);
    if (!text) return "";
    const auto listed = inspector.attempt(storage::kManifestName, [&] {
        return storage::parse_manifest(*text, storage::kManifestName);
    });
    if (!listed) return storage::sha256_hex(storage::bytes_of(*text));
    inspector.compare_lines(storage::kManifestName, *text, storage::manifest_text(*listed));
    for (const auto& [name, digest] : *listed) {
        if (!inspector.has(name)) {
            inspector.report(name, "is missing; {} lists it", storage::kManifestName);
        } else {
            check_file(name, digest, inspector);
        }
    }
    for (const auto& [name, is_regular] : inspector.entries()) {
        if (name == storage::kManifestName || name == report::kSummaryName) continue;
        if (name.starts_with("checkpoints/")) continue;  // of groups that may still be resumed
        if (!listed->contains(name)) {
            inspector.report(name, "exists; {} does not list it", storage::kManifestName);
        }
    }
    return storage::sha256_hex(storage::bytes_of(*text));
}

Verification verify(const std::filesystem::path& directory) {
    std::error_code error;
    require(std::filesystem::is_directory(directory, error), ExitCode::usage,
            "{}: expected the directory of a result", directory.string());
    Verification verification;
    Inspector inspector(directory);
    if (is_unfinished(inspector)) {
        inspector.report(kResult, "is missing: the run has no result (unfinished; see `{}`)",
                         "hpcai500 status " + shell_quote(directory.string()));
        verification.findings = inspector.take_findings();
        return verification;
    }
    verification.manifest = check_manifest(inspector);
    verification.record =
        inspector.parse(kResult, records::from_json<RunRecord>, records::to_json<RunRecord>);
    if (verification.record) {
        const RunRecord& record = *verification.record;
        check_text("environment.json", records::environment_to_json(record.environment), inspector);
        check_text(report::kSummaryName, report::summary(record, verification.manifest), inspector);
        check_text("config.yaml", record.config, inspector);
        const auto config =
            inspector.attempt(kResult, [&] { return config::parse(record.config, "config", {}); });
        if (config) {
            inspector.attempt(kResult, [&] {  // throws for impossibly large numbers
                check_numbers(record, *config, inspector);
            });
        }
    }
    verification.findings = inspector.take_findings();
    return verification;
}

}  // namespace hpcai::verification
