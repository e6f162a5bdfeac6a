// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>
#include <utility>

#include <hpcai/base/text.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/search.hpp>
#include <hpcai/verification/verify.hpp>
#include <hpcai/workloads/workload.hpp>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

void recompute_ceiling(const Claim& claim, RunRecord& record) {
    CeilingRecord& ceiling = record.roofline;
    const std::string& from = claim.config.run.roofline;
    ceiling.source = from == "measure" ? "measured before training" : from;
    ceiling.precision = record.workload.precision;
    std::optional<double> larger;
    for (const Quantity& rate : {ceiling.gemm_flops, ceiling.model_convolution_flops})
        if (rate.value) larger = std::max(larger.value_or(0), *rate.value);
    ceiling.ceiling_flops = value_or_reason(larger, ceiling.ceiling_flops.reason);
}

void recompute_workload(const Claim& claim, RunRecord& record) {
    const WorkloadRecord& stored = claim.record.workload;
    record.workload = describe_workload(claim.config);
    record.workload.precision = config::value_text(claim.config, "training.precision");
    if (record.workload.precision == "auto") record.workload.precision = stored.precision;
    record.workload.training_samples = stored.training_samples;
    record.workload.validation_samples = stored.validation_samples;
    record.workload.samples_sha256 = stored.samples_sha256;
    record.workload.data_disqualifications = stored.data_disqualifications;
    const config::DataConfig& data = claim.config.data;
    if (data.kind == config::DataKind::synthetic ||
        data.kind == config::DataKind::climate_synthetic) {
        record.workload.training_samples = data.synthetic_samples;
        record.workload.validation_samples = data.synthetic_validation_samples;
    }
}

bool is_rounding(double stored, double computed, double tolerance) {
    return std::abs(stored - computed) <= tolerance * std::abs(computed);
}

/// Keeps stored scores that differ only by rounding, because the pow() of the machine that wrote
/// them may round differently.
void keep_rounded_scores(const Claim& claim, RunRecord& record) {
    constexpr double kTolerance = 1e-15;
    const ScoresRecord& stored = claim.record.scores;
    Quantity& penalty = record.scores.penalty_coefficient;
    if (penalty.value && stored.penalty_coefficient.value &&
        is_rounding(*stored.penalty_coefficient.value, *penalty.value, kTolerance)) {
        penalty = stored.penalty_coefficient;
        if (record.scores.flops.value) {
            record.scores.vflops = {*record.scores.flops.value * *penalty.value, ""};
        }
    }
    const auto keep = [](const Quantity& old, Quantity& score) {
        if (old.value && score.value && is_rounding(*old.value, *score.value, 2 * kTolerance))
            score = old;
    };
    keep(stored.vflops_interval.low, record.scores.vflops_interval.low);
    keep(stored.vflops_interval.high, record.scores.vflops_interval.high);
}

/// Returns the recomputed `search`, but keeps stored regulated OPS that differ only by the rounding
/// of a logarithm.
std::optional<SearchRecord> keep_rounded_search(const std::optional<SearchRecord>& stored,
                                                std::optional<SearchRecord> search) {
    constexpr double kTolerance = 1e-12;
    if (!stored || !search) return search;
    const auto keep = [](double old, double& value) {
        if (is_rounding(old, value, kTolerance)) value = old;
    };
    keep(stored->regulated, search->regulated);
    for (std::size_t point = 0; point < std::min(stored->curve.size(), search->curve.size());
         ++point)
        keep(stored->curve[point].regulated, search->curve[point].regulated);
    return search;
}

/// Recomputes the verdict. The exit codes of failed groups are not stored. They are inferred:
/// `invalid` if the replicas diverged, `data` if the run has exit code `data`, else `internal`.
void recompute_verdict(const Claim& claim, const std::vector<GroupResult>& groups,
                       RunRecord& record) {
    VerdictFacts facts = facts_of(record, groups);
    const bool is_data = claim.record.verdict.exit_code == ExitCode::data;
    for (const GroupResult& group : groups) {
        if (group.record.failure.empty()) continue;
        const bool diverged = group.record.audit.diverged_at_step > 0;
        facts.failure_codes.push_back(diverged  ? ExitCode::invalid
                                      : is_data ? ExitCode::data
                                                : ExitCode::internal);
    }
    record.verdict = make_verdict(claim.config, facts);
}

/// Returns the stored record with all derived values recomputed from the configuration, the steps
/// and the predictions. `groups` are the recomputed results of the groups, `quality` is the quality
/// of the ensemble's predictions.
RunRecord recompute(const Claim& claim, const std::vector<GroupResult>& groups,
                    std::span<const search::History> histories, const QualityRecord& quality) {
    RunRecord record = claim.record;
    const std::int64_t hold_out = record.search ? record.search->hold_out_samples : 0;
    record.search =
        keep_rounded_search(record.search, search_of_members(groups, histories, hold_out));
    record.name = claim.config.run.name;
    record.config.text = config::to_json(claim.config);
    record.submission = describe_submission(claim.config);
    recompute_workload(claim, record);
    derive_topology(claim.controller, record.topology);
    record.parameters =
        summary_settings(claim.config, claim.controller.layout(), record.workload.precision);
    add_summary_facts(record.staging, groups, record.parameters);
    recompute_ceiling(claim, record);
    record.flops = flops_of_model(claim.config);
    record.quality = quality;
    const auto& invocations = record.invocations;
    record.time.started_utc = invocations.empty() ? "" : invocations.front().started_utc;
    derive_results(claim.config, claim.controller, groups, record);
    keep_rounded_scores(claim, record);
    derive_energy(claim.config.run, groups, record);
    record.determinism.requested = claim.config.run.deterministic;
    recompute_verdict(claim, groups, record);
    record.summary_sha256 = summary_digest(claim.record);
    return record;
}

constexpr const char* kResult = "result.json";

void check_text(const std::string& file, const std::string& expected, Inspector& inspector) {
    if (const auto text = inspector.read_text(file)) inspector.compare_lines(file, *text, expected);
}

plan::ParallelismController controller_of(const RunRecord& record, const config::Config& config) {
    // These numbers are used before verify() compares them.
    constexpr std::int64_t kMaxSamples = std::int64_t{1} << 31;
    for (const auto& [name, samples] :
         {std::pair{"training_samples", record.workload.training_samples},
          std::pair{"validation_samples", record.workload.validation_samples}}) {
        require(samples >= 0 && samples <= kMaxSamples, ExitCode::data,
                "workload.{} is {}; must be 0 to {}", name, samples, kMaxSamples);
    }
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
    const std::vector<std::pair<std::string, std::string>> sources{
        {"work.groups[", "according to groups/<m>/record.json and the files that it follows from"},
        {"training_digest[", "according to groups/<m>/weights.safetensors"},
        {"search", "according to groups/<m>/" + std::string(kTrialsName)},
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
        {"time.started_utc", "according to invocations"},
        {"workload.", "according to config"},
        {"parameters[", "according to config"},
        {"flops.", "according to the model's layers"},
        {"name", "according to config"},
        {"config", "as the program writes it"},
    };
    for (const auto& [prefix, source] : sources)
        if (key.starts_with(prefix)) return source;
    return "according to the groups' results";
}

void check_numbers(const RunRecord& record, const config::Config& config, Inspector& inspector) {
    const auto controller =
        inspector.attempt(kResult, [&] { return controller_of(record, config); });
    if (!controller) return;
    const Claim claim{record, config, *controller};
    check_launch(claim, inspector);
    check_speed(record, inspector);
    const bool any_finished = std::ranges::any_of(
        record.work.groups, [](const GroupRecord& group) { return group.failure.empty(); });
    const workloads::Workload& workload = workloads::workload_of(config.workload);
    const auto predictions =
        any_finished ? workload.make_check({config, record.workload.validation_samples, inspector})
                     : nullptr;
    const std::vector<search::History> histories = check_search(claim, inspector);
    if (config::is_search(config.workload) && histories.empty()) return;
    const std::vector<GroupResult> groups =
        check_groups(claim, predictions.get(), histories, inspector);
    const bool has_metric = record.quality.metric.index() == workload.metric.index();
    QualityRecord quality =
        any_finished && has_metric
            ? record.quality
            : workloads::missing_quality(
                  workload.metric, any_finished ? "the result names the metric of another workload"
                                                : "no group finished");
    if (any_finished) predictions->finish(quality);
    inspector.compare_keys(kResult, records::to_json(record),
                           records::to_json(recompute(claim, groups, histories, quality)),
                           [&](const std::string& key) { return source_of(key, config); });
}

void check_record(const RunRecord& record, Inspector& inspector) {
    const auto config =
        inspector.attempt(kResult, [&] { return config::parse(record.config.text, "config", {}); });
    if (!config) return;
    check_text("config.yaml", config::to_yaml(*config), inspector);
    inspector.attempt(kResult, [&] {  // throws for impossibly large numbers
        check_numbers(record, *config, inspector);
    });
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

std::set<std::string> unlisted_files() {
    return {report::kSummaryName, "checkpoints/", "groups/*/trials/*.safetensors",
            "groups/*/trials/.*"};
}

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
        if (name == storage::kManifestName || storage::matches_any(name, unlisted_files()))
            continue;
        if (!listed->contains(name)) {
            inspector.report(name, "exists; {} does not list it", storage::kManifestName);
        }
    }
    return storage::sha256_hex(storage::bytes_of(*text));
}

std::string describe_runs_inside(const std::filesystem::path& folder) {
    constexpr std::size_t kMaxNamed = 3;
    std::vector<std::pair<std::filesystem::file_time_type, std::string>> found;
    std::error_code error, ignored;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::filesystem::path config = entry->path() / "config.yaml";
        if (!entry->is_symlink(ignored) && std::filesystem::is_regular_file(config, ignored))
            found.emplace_back(std::filesystem::last_write_time(config, ignored),
                               entry->path().string());
    }
    std::ranges::sort(found, std::greater<>());
    std::string text;
    for (std::size_t i = 0; i < std::min(found.size(), kMaxNamed); ++i)
        text += (i == 0 ? "; runs inside, newest first: " : ", ") + printable(found[i].second);
    return text;
}

std::string to_junit(const std::string& name, const Verification& verification, bool explain) {
    std::map<std::string, std::string> failures;  // by file; empty: none
    for (const std::string& file : verification.files) failures[file];
    for (const Finding& finding : verification.findings)
        failures[finding.file] += finding.shown(explain) + "\n";
    const auto passed = std::ranges::count(failures | std::views::values, "");
    const std::string result = escape_html(printable(name));
    std::string xml = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuite name=\"hpcai500 verify {}\" tests=\"{}\" failures=\"{}\" errors=\"0\">\n",
        result, failures.size(), std::ssize(failures) - passed);
    for (const auto& [file, failure] : failures) {
        xml += fmt::format("<testcase classname=\"{}\" name=\"{}\">", result, escape_html(file));
        if (!failure.empty()) xml += fmt::format("<failure>{}</failure>", escape_html(failure));
        xml += "</testcase>\n";
    }
    return xml + "</testsuite>\n";
}

Verification verify(const std::filesystem::path& directory) {
    std::error_code error;
    require(std::filesystem::is_directory(directory, error), ExitCode::usage,
            "{}: expected the directory of a result, got {}", printable(directory.string()),
            std::filesystem::exists(directory, error) ? "a file" : "a path that does not exist");
    Verification verification;
    Inspector inspector(directory);
    for (const std::string& name : inspector.entries() | std::views::keys)
        if (name == report::kSummaryName || !storage::matches_any(name, unlisted_files()))
            verification.files.push_back(printable(name));
    const std::string inside = describe_runs_inside(directory);
    if (!inside.empty() && !std::filesystem::exists(directory / kResult, error)) {
        verification.findings = {{kResult, "is missing" + inside}};
        return verification;
    }
    verification.manifest = check_manifest(inspector);
    verification.record =
        inspector.parse(kResult, records::from_json<RunRecord>, records::to_json<RunRecord>);
    if (verification.record) {
        const RunRecord& record = *verification.record;
        check_text("environment.json", records::environment_to_json(record.environment), inspector);
        check_text(report::kSummaryName, report::summary(record, verification.manifest), inspector);
        check_record(record, inspector);
    }
    verification.findings = inspector.take_findings();
    return verification;
}

void require_verified(const std::filesystem::path& directory, const RunRecord& record) {
    Inspector inspector(directory);
    check_record(record, inspector);
    const std::vector<Finding> findings = inspector.take_findings();
    if (findings.empty()) return;
    throw Error(ExitCode::mismatch,
                fmt::format("{}: `hpcai500 verify` would reject the result: {}: {}",
                            directory.string(), findings[0].file, findings[0].text));
}

}  // namespace hpcai::verification
