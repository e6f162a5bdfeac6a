// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/report/record_text.hpp>

namespace hpcai::report {
namespace {

constexpr std::size_t kNamedGpus = 3;
constexpr std::size_t kNamedXids = 4;

void add_entries(std::string_view title, const std::vector<const DeviceHealthRecord*>& gpus,
                 std::string (*text)(const DeviceHealthRecord&),
                 std::vector<SummaryEntry>& entries) {
    for (std::size_t index = 0; index < std::min(kNamedGpus, gpus.size()); ++index) {
        entries.push_back({title, fmt::format("rank {} on {}, {}", gpus[index]->world_rank,
                                              gpus[index]->host, text(*gpus[index]))});
    }
    if (gpus.size() > kNamedGpus) {
        entries.push_back({title, fmt::format("{} more", gpus.size() - kNamedGpus)});
    }
}

}  // namespace

std::string errors_text(const DeviceHealthRecord& health) {
    std::vector<std::string> errors;
    const double uncorrected = health.uncorrected_ecc_errors.value.value_or(0);
    if (uncorrected > 0) {
        errors.push_back(fmt::format("{:.0f} uncorrected memory error{}", uncorrected,
                                     uncorrected == 1 ? "" : "s"));
    }
    const auto& xids = health.xids;
    for (std::size_t index = 0; index < std::min(kNamedXids, xids.size()); ++index) {
        errors.push_back(fmt::format("Xid {}", xids[index]));
    }
    if (xids.size() > kNamedXids) {
        errors.push_back(fmt::format("{} more", xids.size() - kNamedXids));
    }
    return fmt::format("{}", fmt::join(errors, ", "));
}

std::string slowdown_text(const DeviceHealthRecord& health) {
    if (health.slowed_by.empty()) return "";
    const auto& share = health.slowed_share.value;
    return fmt::format("{} in {} of the readings", fmt::join(health.slowed_by, " and "),
                       share ? fmt::format("{:.0f} %", 100 * *share) : "some");
}

std::vector<SummaryEntry> health_entries(const RunRecord& record) {
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
    std::vector<SummaryEntry> entries;
    add_entries("GPU with errors", with_errors, errors_text, entries);
    add_entries("GPU slowed", slowed, slowdown_text, entries);
    return entries;
}

}  // namespace hpcai::report
