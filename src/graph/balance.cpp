// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include <hpcai/graph/stages.hpp>

namespace hpcai::graph {
namespace {

constexpr double kInfeasible = std::numeric_limits<double>::infinity();

/// Finds the best cuts by dynamic programming over the ends of the stages.
class Balancer {
public:
    Balancer(const StageCosts& costs, int stages)
        : costs_(costs), nodes_(costs.nodes.size()), stages_(static_cast<std::size_t>(stages)) {
        const auto sums = [&](const auto& values, auto& prefix) {
            prefix.resize(nodes_ + 1);
            for (std::size_t i = 0; i < nodes_; ++i) prefix[i + 1] = prefix[i] + values[i];
        };
        sums(costs.nodes, cost_before_);
        sums(costs.trained, trained_before_);
    }

    std::vector<std::size_t> run() {
        const double limit = smallest_maximum();
        return std::isfinite(limit) ? cheapest_cuts(limit) : std::vector<std::size_t>{};
    }

private:
    double cut_cost(std::size_t position) const {
        return position == 0 || position == nodes_ ? 0 : costs_.cuts[position];
    }
    /// The cost of a stage with nodes [begin, end).
    double cost(std::size_t begin, std::size_t end) const {
        if (trained_before_[end] == trained_before_[begin]) return kInfeasible;
        return cost_before_[end] - cost_before_[begin] + cut_cost(begin) + cut_cost(end);
    }

    /// The smallest possible cost of the most expensive stage.
    double smallest_maximum() const {
        std::vector<double> best(nodes_ + 1, kInfeasible);  // [end] for the stages so far
        best[0] = 0;
        for (std::size_t stage = 0; stage < stages_; ++stage) {
            std::vector<double> next(nodes_ + 1, kInfeasible);
            for (std::size_t end = 1; end <= nodes_; ++end) {
                for (std::size_t begin = 0; begin < end; ++begin) {
                    next[end] = std::min(next[end], std::max(best[begin], cost(begin, end)));
                }
            }
            best = std::move(next);
        }
        return best[nodes_];
    }

    /// The cheapest cuts where no stage costs more than `limit`.
    std::vector<std::size_t> cheapest_cuts(double limit) const {
        std::vector<double> best(nodes_ + 1, kInfeasible);
        best[0] = 0;
        std::vector<std::vector<std::size_t>> stage_begins;  // [stage][end] begin of that stage
        for (std::size_t stage = 0; stage < stages_; ++stage) {
            std::vector<double> next(nodes_ + 1, kInfeasible);
            stage_begins.emplace_back(nodes_ + 1, 0);
            for (std::size_t end = 1; end <= nodes_; ++end) {
                for (std::size_t begin = 0; begin < end; ++begin) {
                    const double total = best[begin] + cut_cost(begin);
                    if (cost(begin, end) > limit || total >= next[end]) continue;
                    next[end] = total;
                    stage_begins.back()[end] = begin;
                }
            }
            best = std::move(next);
        }
        std::vector<std::size_t> cuts;
        for (std::size_t stage = stages_, end = nodes_; stage-- > 1;) {
            end = stage_begins[stage][end];
            cuts.insert(cuts.begin(), end);
        }
        return cuts;
    }

    const StageCosts& costs_;
    std::size_t nodes_, stages_;
    std::vector<double> cost_before_;
    std::vector<int> trained_before_;
};

}  // namespace

std::vector<std::size_t> balance(const StageCosts& costs, int stages) {
    if (static_cast<std::size_t>(stages) > costs.nodes.size()) return {};
    return Balancer(costs, stages).run();
}

}  // namespace hpcai::graph
