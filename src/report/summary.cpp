// SPDX-License-Identifier: Apache-2.0
#include <ranges>
#include <set>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/units.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/record_text.hpp>
#include <hpcai/report/summary.hpp>

#include "lines.hpp"

namespace hpcai::report {
namespace {

std::string or_not_given(std::string_view text) {
    return text.empty() ? "not given" : one_line(text);
}

std::string bytes(const Quantity& quantity) {
    if (!quantity.value || !(*quantity.value >= 0 && *quantity.value < 1e18)) return "unknown";
    return format_bytes(static_cast<std::uint64_t>(*quantity.value));
}

void print_rule(TextPage& page, char letter) {
    page.line("{}", std::string(kPageWidth, letter));
}

/// Prints name, ranks, hosts, samples, seconds, images/s, FLOPS and quality.
void print_row(TextPage& page, const auto&... cells) {
    page.line("{:<9}{:>6}{:>6}{:>12}{:>11}{:>11}{:>15}{:>10}", cells...);
}

void print_group(TextPage& page, const RunRecord& record, std::size_t index) {
    const GroupRecord& group = record.work.groups[index];
    const auto& members = record.quality.members;
    print_row(page, group.group, group.ranks, group.hosts.size(), group.samples_trained,
              number(group.training_seconds, "{:.2f}"), number(group.images_per_second, "{:.2f}"),
              human_flops(group.flops),
              !group.failure.empty()
                  ? "failed"
                  : quality_text(index < members.size() ? members[index] : Quantity{}));
}

void print_ensemble(TextPage& page, const RunRecord& record) {
    int ranks = 0;
    std::set<std::string> hosts;
    for (const GroupRecord& group : record.work.groups) {
        if (!group.failure.empty()) continue;
        ranks += group.ranks;
        hosts.insert(group.hosts.begin(), group.hosts.end());
    }
    print_row(page, "ensemble", ranks, hosts.size(), record.work.samples_trained,
              number(record.time.training_seconds, "{:.2f}"),
              number(record.throughput.images_per_second, "{:.2f}"),
              human_flops(record.scores.flops), quality_text(record.quality.ensemble));
}

void print_header(TextPage& page, const RunRecord& record) {
    print_rule(page, '=');
    page.line("HPC AI500 V3.0, hpcai500 {}", one_line(record.program_version));
    page.line("run {}, started {}", one_line(record.name), one_line(record.time.started_utc));
    const SubmissionRecord& submission = record.submission;
    if (!submission.system_name.empty() || !submission.organization.empty()) {
        page.line("system {}, organization {}", or_not_given(submission.system_name),
                  or_not_given(submission.organization));
    }
    print_rule(page, '-');
}

void print_scores(TextPage& page, const RunRecord& record) {
    const ScoresRecord& scores = record.scores;
    page.entry("verdict", "{}", word_of(record.verdict.status));
    page.entry("VFLOPS", "{}", human_flops(scores.vflops));
    page.entry("FLOPS", "{}, counted by {}", human_flops(scores.flops),
               ledger_text(record.flops.convention));
    page.entry("penalty coefficient", "{} = (quality / target) ^ {}",
               number(scores.penalty_coefficient, penalty_format(scores.penalty_coefficient)),
               record.quality.exponent);
    const Quantity& quality = record.quality.ensemble;
    const double gap = record.quality.target - quality.value.value_or(0);
    page.entry("quality", "{} of the ensemble ({})", quality_text(quality),
               metric_name(record.quality.metric));
    page.entry("target", "{:.4f}{}", record.quality.target,
               !is_finite(quality) ? ""
               : gap > 0           ? fmt::format(", missed by {:.2g}", gap)
                                   : ", reached");
}

void print_search(TextPage& page, const RunRecord& record) {
    if (!record.search) return;
    const SearchRecord& search = *record.search;
    page.entry("OPS", "{} in {} trials", human_flops({search.ops, ""}), search.trials);
    page.entry("regulated OPS", "{}", human_flops({search.regulated, ""}));
    page.entry("best accuracy", "{:.4f} on held-out samples: trial {} of group {}",
               search.best_accuracy, search.best.sequence, search.best.group);
    for (const std::string& reason : search.early_ends) page.entry("ended early", "{}", reason);
}

void print_table(TextPage& page, const RunRecord& record) {
    print_rule(page, '-');
    print_row(page, "group", "ranks", "hosts", "samples", "seconds", "images/s", "FLOPS",
              "quality");
    print_rule(page, '-');
    for (std::size_t index = 0; index < record.work.groups.size(); ++index)
        print_group(page, record, index);
    print_ensemble(page, record);
    print_rule(page, '-');
}

void print_quality(TextPage& page, const RunRecord& record) {
    const QualityRecord& result = record.quality;
    page.line("samples: total over all epochs; quality: on the test data after the last epoch");
    page.line("");
    page.entry("mean of members", "{}", quality_text(result.members_mean));
    page.entry("ensemble gain", "{}", number(result.ensemble_gain, "{:+.4f}"));
    const auto print_interval = [&](const char* score, const char* variation,
                                    const IntervalRecord& interval, auto text) {
        if (!interval.low.value) return;
        page.entry(fmt::format("{} {:.0f} % CI", score, 100 * interval.level), "{} to {}{} ({})",
                   text(interval.low), text(interval.high), variation, one_line(interval.method));
    };
    print_interval("quality", " with other test samples", result.confidence_interval, quality_text);
    print_interval("quality", " with newly trained members and other test samples",
                   result.members_interval, quality_text);
    print_interval("VFLOPS", "", record.scores.vflops_interval, human_flops);
    if (const auto* numbers = std::get_if<TopAccuracyRecord>(&result.metric)) {
        const Quantity& quality = numbers->out_of_bag;
        page.entry("out of bag", "{}{}", quality_text(quality),
                   quality.value ? " on " + counted(numbers->out_of_bag_samples, "sample")
                                 : ": " + one_line(quality.reason));
    }
    if (record.time.time_to_quality_seconds.value) {
        page.entry("time to quality", "{} s of training, until every model reached the target",
                   number(record.time.time_to_quality_seconds, "{:.2f}"));
    }
}

template <typename Metric>
void print_classes(TextPage&, const Metric&, const Quantity&) {}  // no numbers by class

/// Prints a row for each category; `mean` is the ensemble's quality.
void print_classes(TextPage& page, const AveragePrecisionRecord& metric, const Quantity& mean) {
    if (metric.categories.empty()) return;
    page.line("{:<22}{:>8}{:>12}{:>7}{:>10}{:>11}{:>10}", "category", "boxes", "detections", "hits",
              "AP50", "VOC AP50", "AP10");
    print_rule(page, '-');
    for (const CategoryRecord& row : metric.categories) {
        page.line("{:<22}{:>8}{:>12}{:>7}{:>10}{:>11}{:>10}", one_line(row.name), row.boxes,
                  row.detections, row.hits, quality_text(row.ap50), quality_text(row.voc_ap50),
                  quality_text(row.ap10));
    }
    page.line("{:<49}{:>10}{:>11}{:>10}", "mean", quality_text(mean),
              quality_text(metric.ensemble_voc_ap50), quality_text(metric.ensemble_ap10));
    print_rule(page, '-');
}

/// Prints a row for each class of cells; `mean` is the ensemble's quality.
void print_classes(TextPage& page, const MeanIouRecord& metric, const Quantity& mean) {
    if (metric.segments.empty()) return;
    page.line("{:<24}{:>14}{:>14}{:>14}{:>10}", "class", "cells", "predicted", "hits", "IoU");
    print_rule(page, '-');
    for (const SegmentRecord& row : metric.segments) {
        page.line("{:<24}{:>14}{:>14}{:>14}{:>10}", one_line(row.name), row.cells, row.predicted,
                  row.hits, quality_text(row.iou));
    }
    page.line("{:<66}{:>10}", "mean", quality_text(mean));
    page.line("{:<66}{:>10}", "pixel accuracy", quality_text(metric.ensemble_pixel_accuracy));
    print_rule(page, '-');
}

/// Returns the slowest finished group; a failed group may have taken longer.
const GroupRecord* slowest_group(const RunRecord& record) {
    const GroupRecord* slowest = nullptr;
    for (const GroupRecord& group : record.work.groups) {
        if (!group.failure.empty()) continue;
        const double seconds = group.training_seconds.value.value_or(0);
        if (slowest == nullptr || seconds > slowest->training_seconds.value.value_or(0)) {
            slowest = &group;
        }
    }
    return slowest;
}

void print_step_phases(TextPage& page, const RunRecord& record) {
    const GroupRecord* group = slowest_group(record);
    if (group == nullptr) return;
    const TimeBreakdownRecord& time = group->time_breakdown;
    const std::array<std::pair<const char*, std::optional<double>>, 6> phases{
        {{"input", time.input_wait.median.value},
         {"forward", time.forward.median.value},
         {"backward", time.backward.median.value},
         {"communication", time.communication.median.value},
         {"optimizer", time.optimizer.median.value},
         {"other", time.other.median.value}}};
    double sum = 0;
    for (const auto& [name, seconds] : phases) sum += seconds.value_or(0);
    std::string shares;
    for (const auto& [name, seconds] : phases) {
        const std::string share = seconds ? number({100 * *seconds / sum, ""}, "{:.1f} %") : "n/a";
        shares += fmt::format("{}{} {}", shares.empty() ? "" : ", ", name, share);
    }
    page.entry(fmt::format("step of group {}", group->group), "{} s (median); {}",
               number(time.step_seconds, "{:.4f}"),
               sum > 0 ? shares : "phases unknown: " + one_line(time.forward.median.reason));
    constexpr std::size_t kMaxNamed = 3;
    const std::vector<StragglerRecord>& stragglers = record.time_breakdown.stragglers;
    for (std::size_t index = 0; index < std::min(kMaxNamed, stragglers.size()); ++index) {
        const StragglerRecord& straggler = stragglers[index];
        page.entry("straggler",
                   "rank {} on {} (group rank {} of group {}) takes {:.2f} x the median, with the "
                   "largest excess in {}",
                   straggler.world_rank, one_line(straggler.host), straggler.group_rank,
                   straggler.group, straggler.ratio, one_line(straggler.phase));
    }
    if (stragglers.size() > kMaxNamed) {
        page.entry("stragglers", "{} more", stragglers.size() - kMaxNamed);
    }
}

void print_utilization(TextPage& page, const RunRecord& record) {
    const UtilizationRecord& utilization = record.utilization;
    if (!utilization.fraction.value) return;
    page.entry("utilization", "{}; each rank reaches {} of the {} ceiling ({} in {})",
               format_percent(*utilization.fraction.value), human_flops(utilization.flops_per_rank),
               human_flops(record.roofline.ceiling_flops), one_line(record.roofline.ceiling),
               one_line(record.roofline.precision));
}

void print_energy_and_network(TextPage& page, const RunRecord& record) {
    const EnergyRecord& energy = record.energy;
    if (energy.joules.value) {
        page.entry("energy", "{} J, {} W by {} (not whole nodes); VFLOPS per watt: {}",
                   number(energy.joules, "{:.4g}"), number(energy.average_watts, "{:.4g}"),
                   one_line(energy.source), human_flops(record.scores.vflops_per_watt));
    } else if (!energy.joules.reason.empty()) {
        page.entry("energy", "unknown: {}", one_line(energy.joules.reason));
    }
    const Quantity& sent = record.communication.counted_sent_bytes;
    if (!sent.value) return;
    page.entry("network interfaces", "{} sent by all programs on the nodes during training",
               bytes(sent));
}

/// Returns "hw_thermal_slowdown in 41 % of the readings".
std::string slowdown_text(const DeviceHealthRecord& health) {
    const auto& share = health.slowed_share.value;
    return fmt::format("{} in {} of the readings", fmt::join(health.slowed_by, " and "),
                       share ? fmt::format("{:.0f} %", 100 * *share) : "some");
}

/// Prints the GPUs with errors, then the slowed ones by decreasing share.
void print_gpu_health(TextPage& page, const RunRecord& record) {
    std::vector<const DeviceHealthRecord*> with_errors, slowed;
    for (const GroupRecord& group : record.work.groups) {
        for (const DeviceHealthRecord& gpu : group.device_health) {
            if (!errors_text(gpu).empty()) with_errors.push_back(&gpu);
            if (!gpu.slowed_by.empty()) slowed.push_back(&gpu);
        }
    }
    std::ranges::stable_sort(slowed, std::ranges::greater{}, [](const DeviceHealthRecord* gpu) {
        return gpu->slowed_share.value.value_or(0);
    });
    const auto print_gpus = [&](const char* title, const auto& gpus, auto text_of) {
        constexpr std::size_t kMaxNamed = 3;
        for (const DeviceHealthRecord* gpu :
             std::span(gpus).first(std::min(gpus.size(), kMaxNamed)))
            page.entry(title, "rank {} on {}, {}", gpu->world_rank, one_line(gpu->host),
                       one_line(text_of(*gpu)));
        if (gpus.size() > kMaxNamed) page.entry(title, "{} more", gpus.size() - kMaxNamed);
    };
    print_gpus("GPU with errors", with_errors, errors_text);
    print_gpus("GPU slowed", slowed, slowdown_text);
}

void print_training(TextPage& page, const RunRecord& record) {
    std::int64_t passed = 0;
    for (const GroupRecord& group : record.work.groups) {
        passed += group.audit.passed;
        for (const ContinuationRecord& continuation : group.continuations) {
            page.entry(fmt::format("group {} resumed", group.group), "{}, by the launch of {}",
                       continuation.step > 0 ? fmt::format("at step {}", continuation.step)
                                             : "from the beginning",
                       one_line(continuation.started_utc));
        }
    }
    const ParallelRecord& parallel = record.parallel;
    if (parallel.pipeline_degree > 1) {
        page.entry("pipeline", "{} x {}, {}, {}, bubble {}",
                   counted(parallel.pipeline_degree, "stage"),
                   counted(parallel.data_degree * parallel.model_degree, "rank"),
                   counted(parallel.micro_batches, "micro-batch"), one_line(parallel.schedule),
                   number(parallel.bubble_fraction, "{:.3f}"));
        page.entry("pipeline messages", "a rank sends up to {} per step to other stages",
                   bytes_text(parallel.message_bytes_per_step));
    }
    if (parallel.model_degree > 1) {
        page.entry("tensor parallelism",
                   "each layer has {} shards per stage and replica; a rank "
                   "sends up to {} per step",
                   parallel.model_degree, bytes_text(parallel.shard_bytes_per_step));
    }
    if (parallel.data_degree > 1) {
        const CommunicationRecord& sent = record.communication;
        page.entry("replica audits", "{} passed", passed);
        page.entry(
            "gradient all-reduces", "{} in {}: {} sent per step by a rank, {} s per step exposed",
            one_line(sent.algorithm), one_line(sent.precision), bytes(sent.sent_bytes_per_step),
            number(sent.exposed_seconds_per_step, "{:.4f}"));
        if (sent.statistics_ranks > 1) {
            page.entry("BatchNorm statistics",
                       "over {} ranks, {} all-reduces per step with {} in total, "
                       "{} s in the whole run; included in the line above",
                       sent.statistics_ranks, sent.statistics_sums_per_step,
                       bytes_text(sent.statistics_bytes_per_step),
                       number(sent.statistics_seconds, "{:.2f}"));
        }
    }
    if (record.determinism.requested) {
        page.entry("determinism", "{}", one_line(record.determinism.guarantee));
    }
    for (std::size_t group = 0; group < record.training_digest.size(); ++group) {
        const std::string& digest = record.training_digest[group];
        if (digest.empty()) continue;
        page.entry(fmt::format("model digest {}", group), "{}  (first digits of SHA-256)",
                   one_line(digest.substr(0, 16)));
    }
}

void print_parameters(TextPage& page, const RunRecord& record) {
    print_rule(page, '-');
    std::size_t width = 0;
    for (const ParameterRecord& parameter : record.parameters)
        width = std::max(width, parameter.key.size());
    for (const ParameterRecord& parameter : record.parameters)
        page.line("{:<{}} : {}", one_line(parameter.key), width, one_line(parameter.value));
    print_rule(page, '=');
}

}  // namespace

std::string result_line(const RunRecord& record) {
    return fmt::format("RESULT {}  workload={} M={} P={} FLOPS={} VFLOPS={} quality={} target={}",
                       word_of(record.verdict.status), one_line(problem_name(record.workload)),
                       record.topology.groups, record.topology.degree,
                       flops_text(record.scores.flops), flops_text(record.scores.vflops),
                       quality_text(record.quality.ensemble),
                       quality_text({record.quality.target, ""}));
}

std::string result_line(const RunRecord& record, std::string_view manifest) {
    return fmt::format("{} manifest={}", result_line(record), one_line(manifest));
}

nlohmann::ordered_json result_json(const RunRecord& record, std::string_view manifest) {
    using records::number_or_null;
    return {{"status", word_of(record.verdict.status)},
            {"workload", problem_name(record.workload)},
            {"M", record.topology.groups},
            {"P", record.topology.degree},
            {"FLOPS", number_or_null(record.scores.flops)},
            {"VFLOPS", number_or_null(record.scores.vflops)},
            {"quality", number_or_null(record.quality.ensemble)},
            {"target", record.quality.target},
            {"manifest", manifest}};
}

std::string summary(const RunRecord& record, std::string_view manifest) {
    TextPage page;
    print_header(page, record);
    print_scores(page, record);
    print_search(page, record);
    print_table(page, record);
    std::visit([&](const auto& metric) { print_classes(page, metric, record.quality.ensemble); },
               record.quality.metric);
    print_quality(page, record);
    print_step_phases(page, record);
    print_utilization(page, record);
    print_energy_and_network(page, record);
    print_gpu_health(page, record);
    print_training(page, record);
    print_parameters(page, record);
    for (const std::string& reason : record.verdict.reasons) {
        page.line("reason: {}", one_line(reason));
    }
    page.line("{}", result_line(record, manifest));
    return page.take();
}

}  // namespace hpcai::report
