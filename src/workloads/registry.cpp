// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/workloads/tasks.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::workloads {
namespace {

/// Sets each Quantity of a record to `missing`.
struct SetMissing {
    Quantity missing;

    void operator()(const std::string&, Quantity& quantity) const { quantity = missing; }

    void operator()(const std::string&, MetricRecord& metric) const {
        std::visit([&](auto& numbers) { for_each_field(numbers, *this); }, metric);
    }

    template <typename T>
    void operator()(const std::string&, T& member) const {
        if constexpr (requires { member.record_values(); }) for_each_field(member, *this);
    }
};

}  // namespace

const Workload& workload_of(const config::WorkloadConfig& workload) {
    static const std::array workloads{classification(), detection(), segmentation()};
    const auto found = std::ranges::find(workloads, task_of(workload), &Workload::task);
    ensure(found != workloads.end(), "no task is registered for workload.kind '{}'",
           row_of(workload.kind).name);
    return *found;
}

std::unique_ptr<const Evaluator> make_evaluator(const config::Config& config,
                                                const data::SampleSets& samples) {
    return workload_of(config.workload).make_evaluator(config, samples);
}

QualityRecord missing_quality(MetricRecord metric, const std::string& reason) {
    QualityRecord quality;
    quality.metric = std::move(metric);
    for_each_field(quality, SetMissing{no_value(reason)});
    return quality;
}

std::string group_prefix(int group) {
    return fmt::format("groups/{}/", group);
}

}  // namespace hpcai::workloads
