// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/report/record_text.hpp>

#include "lines.hpp"

namespace hpcai::report {
namespace {

constexpr std::size_t kMaxNamedRanks = 4;
constexpr std::size_t kMaxNamedXids = 4;

/// Returns the progress of a rank, for comparisons.
auto progress_of(const FlightRecord& record) {
    return std::tuple(record.steps_done, record.all_reduces_started);
}

/// Returns "in forward of step 12" for the latest event that has not ended. If all recorded events
/// have ended, such as between phases, returns "after ..." for the last one.
std::string current_phase(const FlightRecord& record) {
    const auto open = std::ranges::find_if(
        record.events.rbegin(), record.events.rend(),
        [](const FlightEvent& event) { return !event.end_seconds.value.has_value(); });
    if (record.events.empty()) return "before its first step";
    const bool is_open = open != record.events.rend();
    const FlightEvent& event = is_open ? *open : record.events.back();
    return fmt::format("{} {} of step {}", is_open ? "in" : "after", printable(event.what),
                       event.step);
}

std::string describe_rank(const FlightRecord& record) {
    return fmt::format(
        "rank {} (world rank {} on {}, process {}) is {}, {:.1f} s after its last step",
        record.group_rank, record.world_rank, printable(record.host), record.process,
        current_phase(record), record.silent_seconds);
}

std::string si(const Quantity& quantity, std::string_view unit) {
    return quantity.value ? format_si(*quantity.value, unit)
                          : fmt::format("none: {}", one_line(quantity.reason));
}

void print_operations(TextPage& page, const RooflineRecord& record) {
    page.line("{:<20} {:>8} {:>10} {:>11}", "operation and passes", "FLOP/B", "time", "speed");
    std::string last;
    std::int64_t unmeasured = 0;
    for (const OperationRate& rate : record.operations) {
        unmeasured += rate.seconds.value ? 0 : 1;
        if (!rate.seconds.value) continue;
        const std::string operation = fmt::format(
            "{} in {}: {}{}", one_line(rate.name), one_line(rate.precision), one_line(rate.shape),
            rate.nodes > 1 ? fmt::format(" ({} layers)", rate.nodes) : "");
        if (operation != last) page.wrapped(4, "{}", operation);
        last = operation;
        page.line("  {:<18} {:>8.1f} {:>10} {:>11}", one_line(rate.pass), rate.flops / rate.bytes,
                  format_seconds(*rate.seconds.value), si(rate.flops_per_second, "FLOPS"));
    }
    if (unmeasured > 0)
        page.line("not measured: {}, for lack of time (--seconds)",
                  counted(unmeasured, "operation"));
}

void print_all_reduces(TextPage& page, const RooflineRecord& record) {
    if (record.all_reduce.empty()) {
        page.line("all-reduce      none: there is only one rank");
        return;
    }
    for (const AllReduceRate& rate : record.all_reduce) {
        page.wrapped(16, "all-reduce      {}, {}: {} in {}, {}", counted(rate.ranks, "rank"),
                     one_line(rate.scope), format_si(rate.bytes, "B"), format_seconds(rate.seconds),
                     format_si(rate.bytes_per_second, "B/s"));
    }
    for (const AllReduceFit& fit : record.all_reduce_fits) {
        page.wrapped(
            16, "all-reduce fit  {}, {}, {}: latency {}, bandwidth {}", counted(fit.ranks, "rank"),
            one_line(fit.scope), one_line(fit.backend),
            fit.latency_seconds.value ? format_seconds(*fit.latency_seconds.value) : "unknown",
            si(fit.bytes_per_second, "B/s"));
    }
}

void print_training_steps(TextPage& page, const CalibrationRecord& calibration) {
    if (calibration.points.empty()) {
        page.wrapped(16, "training steps  none: {}", one_line(calibration.reason));
        return;
    }
    page.wrapped(16, "training steps  {} at {} x {}, {}, {}", one_line(calibration.model),
                 calibration.image_size, calibration.image_width, one_line(calibration.precision),
                 one_line(calibration.optimizer));
    for (const CalibrationPoint& point : calibration.points) {
        const std::optional<double> with_all_reduces = point.summed_step_seconds.value;
        page.wrapped(16, "  {:>13} per rank: {}{}", counted(point.samples, "sample"),
                     format_seconds(point.step_seconds),
                     with_all_reduces ? fmt::format(", {} with all-reduces of {}",
                                                    format_seconds(*with_all_reduces),
                                                    bytes_text(calibration.gradient_bytes))
                                      : "");
    }
    if (!calibration.reason.empty())
        page.wrapped(4, "  not measured: {} (--seconds)", one_line(calibration.reason));
}

}  // namespace

std::string describe_laggards(std::span<const FlightRecord> records) {
    if (records.empty()) return "";
    const auto least_progress = progress_of(*std::ranges::min_element(records, {}, progress_of));
    std::vector<std::string> descriptions;
    std::size_t count = 0;
    for (const FlightRecord& record : records) {
        if (progress_of(record) != least_progress) continue;
        if (++count <= kMaxNamedRanks) descriptions.push_back(describe_rank(record));
    }
    std::string text = fmt::format("{}", fmt::join(descriptions, "; "));
    if (count > kMaxNamedRanks)
        text += fmt::format("; at the same point: {} more", count - kMaxNamedRanks);
    if (count < records.size())
        text += fmt::format("; ahead of that: {} of {}", records.size() - count,
                            counted(std::ssize(records), "rank"));
    return text;
}

std::string problem_name(const WorkloadRecord& workload) {
    const bool is_official = workload.problem_class == "official";
    return workload.kind + (is_official ? "" : "-" + workload.problem_class);
}

std::string errors_text(const DeviceHealthRecord& health) {
    std::vector<std::string> errors;
    const auto uncorrected =
        static_cast<std::int64_t>(health.uncorrected_ecc_errors.value.value_or(0));
    if (uncorrected > 0) errors.push_back(counted(uncorrected, "uncorrected memory error"));
    const auto& xids = health.xids;
    for (std::size_t index = 0; index < std::min(kMaxNamedXids, xids.size()); ++index) {
        errors.push_back(fmt::format("Xid {}", xids[index]));
    }
    if (xids.size() > kMaxNamedXids) {
        errors.push_back(fmt::format("{} more", xids.size() - kMaxNamedXids));
    }
    return fmt::format("{}", fmt::join(errors, ", "));
}

std::string_view penalty_format(const Quantity& penalty) {
    constexpr double kRoundsTo1000 = 999.95;  // "{:#.4g}" would print "1000."
    return penalty.value.value_or(0) < kRoundsTo1000 ? "{:#.4g}" : "{:.4g}";
}

std::string roofline_text(const RooflineRecord& record) {
    TextPage page;
    page.wrapped(2, "roofline of {}", one_line(record.device));
    page.wrapped(2, "{} on {}, {} each, {}; measured for {}, {}", counted(record.ranks, "rank"),
                 counted(record.nodes, "node"), counted(record.threads, "thread"),
                 counted(record.cores, "core"), format_seconds(record.measured_seconds),
                 one_line(record.measured_utc));
    page.line("");
    print_operations(page, record);
    page.line("");
    for (const BandwidthRate& rate : record.bandwidths) {
        page.wrapped(
            16, "{:<15} {}{}", one_line(rate.name), si(rate.bytes_per_second, "B/s"),
            rate.bytes_per_second.value ? fmt::format("  ({})", one_line(rate.method)) : "");
    }
    print_all_reduces(page, record);
    print_training_steps(page, record.calibration);
    return page.take();
}

}  // namespace hpcai::report
