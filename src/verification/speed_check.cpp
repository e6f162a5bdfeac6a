// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <utility>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

constexpr double kTera = 1e12;
/// Published dense 16-bit peaks of the fastest variant of each GPU, in TFLOP/s, by a word of the
/// device's name.
constexpr std::pair<std::string_view, double> kPeaks[] = {
    {"V100", 130},   {"T4", 65},       {"A30", 165},   {"A40", 150},
    {"A100", 312},   {"L4", 121},      {"L40S", 362},  {"H100", 989.4},
    {"H200", 989.4}, {"GH200", 989.4}, {"B200", 2250}, {"GB200", 2500},
};
constexpr double kThreadPeak = 10;  // TFLOP/s; AMX has 4 at 4 GHz: 1024 bf16 FLOPs per cycle
constexpr double kInt8Factor = 2;   // int8 peak / 16-bit peak
constexpr double kMaxFraction = 2;  // other programs can reduce the measured ceiling
constexpr double kMaxOfPeak = 1.1;  // `table3` also counts operations other than matrix products

bool has_word(const std::string& text, std::string_view word) {
    const std::size_t at = text.find(word), end = at + word.size();
    const auto is_inside = [&](std::size_t index) {
        return std::isalnum(static_cast<unsigned char>(text[index])) != 0;
    };
    return at != std::string::npos && (at == 0 || !is_inside(at - 1)) &&
           (end == text.size() || !is_inside(end));
}

/// Returns the peak of a rank's device in TFLOP/s; 0 for an unknown device.
double peak_of(const PlaceRecord& place) {
    if (has_word(place.device, "thread") || has_word(place.device, "threads"))
        return kThreadPeak * std::max(place.threads, 1);
    const auto* const found = std::ranges::find_if(
        kPeaks, [&](const auto& peak) { return has_word(place.device, peak.first); });
    return found == std::end(kPeaks) ? 0 : found->second;
}

}  // namespace

void check_speed(const RunRecord& record, Inspector& inspector) {
    const double fraction = record.utilization.fraction.value.value_or(0);
    if (fraction > kMaxFraction && record.roofline.source == "measured before training") {
        inspector.report("result.json", "utilization.fraction is {}; must be at most {}", fraction,
                         kMaxFraction);
    }
    double peak = 0;
    for (const PlaceRecord& place : record.topology.map) {
        const double own = peak_of(place);
        if (own == 0) return;
        peak += own * (record.workload.precision == "int8" ? kInt8Factor : 1);
    }
    for (const auto& [key, flops] :
         {std::pair{"scores.flops", record.scores.flops.value.value_or(0)},
          {"search.ops", record.search ? record.search->ops : 0}}) {
        if (flops <= kMaxOfPeak * peak * kTera) continue;
        inspector.report("result.json",
                         "{} is {}; must be at most {} x {} TFLOP/s, according to the published "
                         "peaks of the devices",
                         key, flops, kMaxOfPeak, peak);
    }
}

}  // namespace hpcai::verification
