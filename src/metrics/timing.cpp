// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/base/clock.hpp>
#include <hpcai/metrics/timing.hpp>

namespace hpcai::metrics {
namespace {

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

TimingObserver::TimingObserver(const graph::Graph& graph, std::function<double()> now)
    : now_(std::move(now)) {
    for (const graph::Node& node : graph.nodes()) {
        kinds_.emplace(node.name, ops::name_of(node.operation));
    }
}

TimingObserver::TimingObserver(const graph::Graph& graph)
    : TimingObserver(graph, [watch = Stopwatch()] { return watch.seconds(); }) {}

void TimingObserver::before(const graph::Step&) {
    started_ = now_();
}

void TimingObserver::after(const graph::Step& step) {
    const double seconds = now_() - started_;
    const auto [found, is_new] = calls_.try_emplace({step.kernel, step.pass});
    if (is_new) {
        found->second.order = calls_.size() - 1;
        found->second.name = step.name;
    }
    found->second.seconds.push_back(seconds);
}

std::vector<OperationTime> TimingObserver::by_node() const {
    std::vector<OperationTime> times(calls_.size());
    for (const auto& [key, call] : calls_) {
        times[call.order] = {call.name, key.second, median(call.seconds)};
    }
    return times;
}

std::vector<OperationTime> TimingObserver::by_operation() const {
    std::map<std::pair<std::string, ops::Pass>, std::vector<double>> sums;  // [training step]
    for (const auto& [key, call] : calls_) {
        std::vector<double>& sum = sums[{kind_of(call.name), key.second}];
        sum.resize(std::max(sum.size(), call.seconds.size()));
        std::transform(call.seconds.begin(), call.seconds.end(), sum.begin(), sum.begin(),
                       std::plus<>());
    }
    std::vector<OperationTime> times;
    for (const auto& [key, seconds] : sums) {
        times.push_back({key.first, key.second, median(seconds)});
    }
    std::stable_sort(times.begin(), times.end(), [](const auto& a, const auto& b) {
        return a.median_seconds > b.median_seconds;
    });
    return times;
}

const std::string& TimingObserver::kind_of(const std::string& node) const {
    static const std::string kGradientSum = "gradient_sum";
    const auto found = kinds_.find(node);
    return found == kinds_.end() ? kGradientSum : found->second;
}

}  // namespace hpcai::metrics
