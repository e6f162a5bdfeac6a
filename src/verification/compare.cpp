// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/core.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/csv.hpp>
#include <hpcai/report/repetitions.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/verification/compare.hpp>
#include <hpcai/verification/repetitions.hpp>
#include <hpcai/verification/verify.hpp>
#include <hpcai/workloads/workload.hpp>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

constexpr std::size_t kComparedFileLimitBytes = std::size_t{1} << 30;
constexpr double kSameRelative = 0.02;   // smaller relative differences do not count
constexpr double kRatioRounding = 1e-9;  // relative
constexpr double kTestLevel = 0.05;      // significance level of the rank-sum test

/// One of the two compared results; of a series, the run with the median VFLOPS.
struct StoredResult {
    fs::path directory;
    RunRecord record;
    config::Config config;
    std::optional<RepetitionsRecord> repetitions;  // of the series
};

StoredResult read(fs::path directory) {
    std::optional<RepetitionsRecord> repetitions;
    if (has_repetitions(directory)) {
        repetitions = read_repetitions(directory);
        directory /= repetitions->repetitions[report::median_repetition(*repetitions)].directory;
    }
    const fs::path path = directory / "result.json";
    require_result(directory);
    RunRecord record = records::read_file<RunRecord>(path, kComparedFileLimitBytes);
    config::Config config = config::parse(record.config.text, path.string() + ": config", {});
    return {std::move(directory), std::move(record), std::move(config), std::move(repetitions)};
}

std::string name_of(const StoredResult& result) {
    const std::string name = fmt::format("{} in {}", result.record.name, result.directory.string());
    if (!result.repetitions) return name;
    return fmt::format("{} (the median of {})", name,
                       counted(std::ssize(result.repetitions->repetitions), "run"));
}

std::vector<SettingDifference> differing(const std::map<std::string, std::string>& first,
                                         const std::map<std::string, std::string>& second) {
    std::map<std::string, std::pair<std::string, std::string>> values;
    for (const auto& [key, value] : first) values[key].first = value;
    for (const auto& [key, value] : second) values[key].second = value;
    std::vector<SettingDifference> differences;
    for (const auto& [key, pair] : values) {
        if (pair.first != pair.second) differences.push_back({key, pair.first, pair.second});
    }
    return differences;
}

/// Returns "workload.epochs 1 -> 2, ...": the workload and the amount of work, where they differ.
std::string work_differences(const Comparison& comparison) {
    std::string text;
    for (const auto* rows : {&comparison.settings, &comparison.environment}) {
        for (const auto& [key, first, second] : *rows) {
            if (key.starts_with("workload.") || key.ends_with(" samples") || key == "base models")
                text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", key, first, second);
        }
    }
    return text;
}

std::map<std::string, std::string> settings_of(const StoredResult& result) {
    std::map<std::string, std::string> settings;
    for (const config::Key& key : config::keys())
        settings[key.full_name()] = config::value_text(result.config, key.full_name());
    return settings;
}

std::map<std::string, std::string> facts_of_run(const RunRecord& record) {
    std::map<std::string, std::string> facts = record.environment;
    facts["base models"] = std::to_string(record.topology.groups);
    facts["training samples"] = std::to_string(record.workload.training_samples);
    facts["test samples"] = std::to_string(record.workload.validation_samples);
    facts["ranks"] = std::to_string(record.topology.ranks);
    facts["nodes"] = std::to_string(record.topology.nodes);
    facts["effective precision"] = record.workload.precision;
    return facts;
}

/// Returns the step times of the finished groups; empty if a group has stored no steps.
evaluation::StepSeconds step_seconds_of(const StoredResult& result) {
    evaluation::StepSeconds groups;
    for (const GroupRecord& group : result.record.work.groups) {
        if (!group.failure.empty()) continue;
        const fs::path path =
            result.directory / (workloads::group_prefix(group.group) + "steps.csv");
        std::error_code error;
        if (!fs::is_regular_file(path, error)) return {};
        std::vector<double> seconds;
        double before = 0;
        const std::string text = storage::read_file_text(path, kComparedFileLimitBytes);
        for (const StepRecord& step : report::steps_from_csv(text, path.string())) {
            seconds.push_back(step.end_seconds - before);
            before = step.end_seconds;
        }
        groups.push_back(std::move(seconds));
    }
    return groups;
}

enum class Direction { time, rate };

/// Judges a time or a rate by `ratio`, the confidence interval of the second training time divided
/// by the first. `scale` converts this ratio to the ratio of the times per unit of work.
MetricComparison compare_speed(MetricComparison metric, Direction direction,
                               const std::optional<evaluation::Interval>& ratio, double scale) {
    if (!metric.first.value || !metric.second.value) {
        metric.why = "one result does not have this metric";
        return metric;
    }
    if (!ratio || !std::isfinite(scale) || scale <= 0) {
        metric.why = "one result has no stored steps, or its steps are too few or too uneven";
        return metric;
    }
    const evaluation::Interval time{ratio->low * scale, ratio->high * scale};
    metric.why = fmt::format("the time ratio is {:.4f} to {:.4f} (95 %, bootstrap of steps)",
                             time.low, time.high);
    const double stored = direction == Direction::time ? *metric.second.value / *metric.first.value
                                                       : *metric.first.value / *metric.second.value;
    const double rounding = kRatioRounding * stored;
    if (!(time.low <= stored + rounding && stored - rounding <= time.high)) {
        metric.why += fmt::format(", but the stored results give {:.4f}", stored);
        return metric;
    }
    if (time.low >= 1 - kSameRelative && time.high <= 1 + kSameRelative) {
        metric.judgement = Judgement::same;
    } else if (time.high < 1) {
        metric.judgement = Judgement::faster;
    } else if (time.low > 1) {
        metric.judgement = Judgement::slower;
    }
    metric.is_within_runs = metric.judgement != Judgement::unclear;
    return metric;
}

/// Compares numbers without a known spread. Only equal numbers are certainly the same.
MetricComparison compare_number(MetricComparison metric) {
    const bool is_same = metric.first.value && metric.first.value == metric.second.value;
    metric.judgement = is_same ? Judgement::same : Judgement::unclear;
    metric.why = is_same ? "equal" : "each result has one value, with unknown spread";
    return metric;
}

/// Compares exact counts, which have no spread.
MetricComparison compare_count(MetricComparison metric) {
    if (!metric.first.value || !metric.second.value) {
        metric.why = "one result does not have this metric";
        return metric;
    }
    metric.judgement = *metric.second.value > *metric.first.value   ? Judgement::more
                       : *metric.second.value < *metric.first.value ? Judgement::less
                                                                    : Judgement::same;
    metric.why = "counted";
    return metric;
}

/// Judges VFLOPS by speed and quality. The judgement is unclear if one of these is unclear, if they
/// are opposite, or if the stored VFLOPS contradict them.
MetricComparison compare_vflops(MetricComparison metric, Judgement speed, Judgement quality) {
    const auto sign = [](Judgement judgement) {
        switch (judgement) {
            case Judgement::faster:
            case Judgement::better:
                return 1;
            case Judgement::slower:
            case Judgement::worse:
                return -1;
            default:
                return 0;
        }
    };
    const bool is_known = speed != Judgement::unclear && quality != Judgement::unclear;
    const int sum = sign(speed) + sign(quality);
    metric.why = fmt::format("speed {}, quality {}", word_of(speed), word_of(quality));
    if (!is_known || (sum == 0 && sign(speed) != 0)) return metric;
    const double ratio = *metric.second.value / *metric.first.value;
    const bool do_numbers_agree =
        sum > 0   ? ratio > 1
        : sum < 0 ? ratio < 1
                  : ratio >= 1 / (1 + kSameRelative) && ratio <= 1 / (1 - kSameRelative);
    if (!do_numbers_agree) {
        metric.why += fmt::format(", but the stored results give a ratio of {:.4f}", ratio);
        return metric;
    }
    metric.judgement = sum > 0 ? Judgement::better : sum < 0 ? Judgement::worse : Judgement::same;
    return metric;
}

workloads::QualityComparison compare_intervals(const IntervalRecord& first,
                                               const IntervalRecord& second) {
    const std::string other_samples = "the test samples differ, and the 95 % intervals ";
    if (!first.low.value || !first.high.value || !second.low.value || !second.high.value) {
        return {Judgement::unclear, "one result has no interval"};
    }
    if (*second.low.value > *first.high.value) {
        return {Judgement::better, other_samples + "do not overlap"};
    }
    if (*second.high.value < *first.low.value) {
        return {Judgement::worse, other_samples + "do not overlap"};
    }
    return {Judgement::unclear, other_samples + "overlap"};
}

/// Judges quality.ensemble: by a paired test if both results have the same labels, else by the
/// overlap of their intervals.
workloads::QualityComparison judge_quality(const StoredResult& first, const StoredResult& second) {
    const QualityRecord &a = first.record.quality, &b = second.record.quality;
    if (!a.ensemble.value || !b.ensemble.value) {
        return {Judgement::unclear, "one result has no quality"};
    }
    if (a.metric.index() != b.metric.index()) return {Judgement::unclear, "the metrics differ"};
    if (a.labels_sha256.empty() || a.labels_sha256 != b.labels_sha256)
        return compare_intervals(a.confidence_interval, b.confidence_interval);
    return workloads::workload_of(first.config.workload)
        .compare({first.config, first.directory / "evaluation", second.directory / "evaluation"});
}

std::vector<MetricComparison> compare_metrics(const StoredResult& first,
                                              const StoredResult& second) {
    const RunRecord &a = first.record, &b = second.record;
    const evaluation::StepSeconds first_steps = step_seconds_of(first),
                                  second_steps = step_seconds_of(second);
    const auto ratio = !first_steps.empty() && first_steps == second_steps
                           ? evaluation::Interval{1, 1}
                           : evaluation::time_ratio_95(first_steps, second_steps);
    // These factors convert the ratio of training times to ratios of times per sample and per FLOP.
    const double samples =
        static_cast<double>(a.work.samples_trained) / static_cast<double>(b.work.samples_trained);
    const double flops = samples * static_cast<double>(a.flops.training_per_sample) /
                         static_cast<double>(b.flops.training_per_sample);
    const auto& first_rate = a.throughput.images_per_second;
    const auto& second_rate = b.throughput.images_per_second;
    std::vector<MetricComparison> metrics;
    metrics.push_back(
        compare_speed({"throughput.images_per_second", "1/s", first_rate, second_rate},
                      Direction::rate, ratio, samples));
    metrics.push_back(compare_speed({"scores.flops", "FLOP/s", a.scores.flops, b.scores.flops},
                                    Direction::rate, ratio, flops));
    const Judgement speed = metrics.back().judgement;
    const auto [judgement, why] = judge_quality(first, second);
    const MetricComparison quality{"quality.ensemble", metric_name(a.quality.metric),
                                   a.quality.ensemble, b.quality.ensemble,
                                   judgement,          why};
    MetricComparison vflops{"scores.vflops", "FLOP/s", a.scores.vflops, b.scores.vflops};
    if (vflops.first.value && vflops.second.value &&
        std::isfinite(*vflops.first.value + *vflops.second.value)) {
        vflops = compare_vflops(vflops, speed, quality.judgement);
    } else {
        vflops.why = "one result has no VFLOPS";
    }
    metrics.push_back(vflops);
    metrics.push_back(quality);
    metrics.push_back(compare_speed(
        {"time.training_seconds", "s", a.time.training_seconds, b.time.training_seconds},
        Direction::time, ratio, 1));
    metrics.push_back(
        compare_number({"communication.exposed_seconds", "s", a.communication.exposed_seconds,
                        b.communication.exposed_seconds}));
    metrics.push_back(
        compare_count({"communication.sent_bytes_per_step", "bytes",
                       a.communication.sent_bytes_per_step, b.communication.sent_bytes_per_step}));
    return metrics;
}

struct RepetitionMetric {
    const char* key;
    Quantity RepetitionRecord::*of;
    RepetitionSpreadRecord RepetitionsRecord::*spread;
    bool more_is_better;
    bool is_speed;
};

constexpr RepetitionMetric kRepetitionMetrics[] = {
    {"scores.flops", &RepetitionRecord::flops, &RepetitionsRecord::flops, true, true},
    {"scores.vflops", &RepetitionRecord::vflops, &RepetitionsRecord::vflops, true, false},
    {"quality.ensemble", &RepetitionRecord::quality, &RepetitionsRecord::quality, true, false},
    {"time.training_seconds", &RepetitionRecord::training_seconds,
     &RepetitionsRecord::training_seconds, false, true},
};

/// Returns whether each of `second` differs from each of `first` by at most kSameRelative.
bool are_same(const std::vector<double>& first, const std::vector<double>& second) {
    const auto [low_1, high_1] = std::ranges::minmax(first);
    const auto [low_2, high_2] = std::ranges::minmax(second);
    return low_1 > 0 && low_2 >= (1 - kSameRelative) * high_1 &&
           high_2 <= (1 + kSameRelative) * low_1;
}

void judge_runs(const RepetitionMetric& row, const std::vector<double>& first,
                const std::vector<double>& second, MetricComparison& metric) {
    metric.judgement = Judgement::unclear;
    metric.is_within_runs = false;
    if (first.empty() || second.empty()) {
        metric.why = "one result has no run whose groups all finished";
        return;
    }
    const double p = evaluation::rank_sum_p(first, second);
    metric.why =
        fmt::format("p = {:.3g} (rank sums of {} and {} runs)", p, first.size(), second.size());
    if (are_same(first, second)) {
        metric.judgement = Judgement::same;
        metric.why += fmt::format(", all within {} %", 100 * kSameRelative);
    } else if (p <= kTestLevel) {
        const bool is_more = *metric.second.value > *metric.first.value;
        const bool is_better = is_more == row.more_is_better;
        metric.judgement = row.is_speed ? (is_better ? Judgement::faster : Judgement::slower)
                                        : (is_better ? Judgement::better : Judgement::worse);
    }
}

/// Sets the metrics of kRepetitionMetrics to the medians of two series. Judges the runs by
/// are_same(), else by a rank-sum test.
void compare_repetitions(const RepetitionsRecord& first, const RepetitionsRecord& second,
                         std::vector<MetricComparison>& metrics) {
    for (const RepetitionMetric& row : kRepetitionMetrics) {
        for (MetricComparison& metric : metrics) {
            if (metric.key != row.key) continue;
            metric.first = (first.*row.spread).median;
            metric.second = (second.*row.spread).median;
            judge_runs(row, counted_values(first, row.of), counted_values(second, row.of), metric);
        }
    }
}

void check_files(const fs::path& directory, std::vector<std::string>& warnings) {
    Inspector inspector(directory);
    check_manifest(inspector);
    const std::vector<Finding> findings = inspector.take_findings();
    if (findings.empty()) return;
    const std::string more =
        findings.size() == 1 ? "" : fmt::format(" and {} more", findings.size() - 1);
    warnings.push_back(fmt::format("{}: does not agree with its manifest ({}: {}{}); see `{}`",
                                   directory.string(), findings.front().file, findings.front().text,
                                   more, "hpcai500 verify " + shell_quote(directory.string())));
}

}  // namespace

Comparison compare(const fs::path& first, const fs::path& second) {
    const StoredResult first_result = read(first), second_result = read(second);
    Comparison comparison{name_of(first_result), name_of(second_result), {}, {}, {}, {}};
    for (const fs::path& series : {first, second})
        for (const fs::path& run : runs_of(series)) check_files(run, comparison.warnings);
    comparison.settings = differing(settings_of(first_result), settings_of(second_result));
    comparison.environment =
        differing(facts_of_run(first_result.record), facts_of_run(second_result.record));
    if (const std::string work = work_differences(comparison); !work.empty())
        comparison.warnings.push_back("the work differs, which alone changes metrics: " + work);
    comparison.metrics = compare_metrics(first_result, second_result);
    if (first_result.repetitions && second_result.repetitions) {
        compare_repetitions(*first_result.repetitions, *second_result.repetitions,
                            comparison.metrics);
    }
    return comparison;
}

}  // namespace hpcai::verification
