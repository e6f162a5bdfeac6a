// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/units.hpp>
#include <hpcai/report/record_text.hpp>

#include "lines.hpp"

namespace hpcai::report {
namespace {

std::string si(const Quantity& quantity, std::string_view unit) {
    return quantity.value ? format_si(*quantity.value, unit)
                          : fmt::format("none: {}", one_line(quantity.reason));
}

std::string seconds(const Quantity& quantity) {
    return quantity.value ? format_seconds(*quantity.value) : "";
}

void print_operations(Page& page, const RooflineRecord& record) {
    page.line("{:<26} {:<6} {:<16} {:>8} {:>10} {:>11}  {}", "operation", "format", "pass",
              "FLOP/B", "time", "speed", "shape");
    for (const OperationRate& rate : record.operations) {
        if (!rate.seconds.value) continue;
        page.line("{:<26} {:<6} {:<16} {:>8.1f} {:>10} {:>11}  {}{}", one_line(rate.name),
                  one_line(rate.precision), one_line(rate.pass), rate.flops / rate.bytes,
                  seconds(rate.seconds), si(rate.flops_per_second, "FLOPS"), one_line(rate.shape),
                  rate.nodes > 1 ? fmt::format(" ({} layers)", rate.nodes) : "");
    }
    const auto left_out = std::ranges::count_if(
        record.operations, [](const OperationRate& rate) { return !rate.seconds.value; });
    if (left_out > 0)
        page.line("not measured: {}, for lack of time (--seconds)", counted(left_out, "operation"));
}

void print_all_reduces(Page& page, const RooflineRecord& record) {
    if (record.all_reduce.empty()) {
        page.line("all-reduce      none: there is only one rank");
        return;
    }
    for (const AllReduceRate& rate : record.all_reduce) {
        page.line("all-reduce      {}, {}: {} in {}, {}", counted(rate.ranks, "rank"),
                  one_line(rate.scope), format_si(rate.bytes, "B"), format_seconds(rate.seconds),
                  format_si(rate.bytes_per_second, "B/s"));
    }
    for (const AllReduceFit& fit : record.all_reduce_fits) {
        page.line(
            "all-reduce fit  {}, {}, {}: latency {}, bandwidth {}", counted(fit.ranks, "rank"),
            one_line(fit.scope), one_line(fit.backend),
            fit.latency_seconds.value ? format_seconds(*fit.latency_seconds.value) : "unknown",
            si(fit.bytes_per_second, "B/s"));
    }
}

void print_calibration(Page& page, const CalibrationRecord& calibration) {
    if (calibration.points.empty()) {
        page.line("training steps  none: {}", one_line(calibration.reason));
        return;
    }
    page.line("training steps  {} at {} x {}, {}, {}", one_line(calibration.model),
              calibration.image_size, calibration.image_width, one_line(calibration.precision),
              one_line(calibration.optimizer));
    for (const CalibrationPoint& point : calibration.points) {
        page.line("  {:>13} per rank: {}{}", counted(point.samples, "sample"),
                  format_seconds(point.step_seconds),
                  point.summed_step_seconds.value
                      ? fmt::format(", {} with all-reduces of {}",
                                    format_seconds(*point.summed_step_seconds.value),
                                    bytes_text(calibration.gradient_bytes))
                      : "");
    }
}

}  // namespace

std::string roofline_text(const RooflineRecord& record) {
    Page page;
    page.line("roofline of {}", one_line(record.device));
    page.line("{} on {}, {} each, {}; measured for {}, {}", counted(record.ranks, "rank"),
              counted(record.nodes, "node"), counted(record.threads, "thread"),
              counted(record.cores, "core"), format_seconds(record.measured_seconds),
              one_line(record.measured_utc));
    page.line("");
    print_operations(page, record);
    page.line("");
    for (const BandwidthRate& rate : record.bandwidths) {
        page.line("{:<15} {}{}", one_line(rate.name), si(rate.bytes_per_second, "B/s"),
                  rate.bytes_per_second.value ? fmt::format("  ({})", one_line(rate.method)) : "");
    }
    print_all_reduces(page, record);
    print_calibration(page, record.calibration);
    return page.take();
}

}  // namespace hpcai::report
