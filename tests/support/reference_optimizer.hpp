// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <hpcai/device/device.hpp>

#include "kernels/reference/optimizer.hpp"
#include "kernels/reference/trust_ratio.hpp"

namespace hpcai::device {

/// The operands of an optimizer: fp32 numbers in host memory.
struct OptimizerValues {
    std::vector<float> parameters, gradients;
    std::array<std::vector<float>, 2> states;
};

/// Runs an optimizer's steps by the references of the kernels, which compute in double, and changes
/// `values`.
inline void take_reference_step(const Optimizer& optimizer, const StepScalars& numbers,
                                OptimizerValues& values) {
    std::vector<kernels::UpdateRange> ranges;
    std::vector<kernels::UpdatePart> parts;
    std::vector<std::int64_t> first_part{0};
    for (const Optimizer::Range& range : optimizer.ranges) {
        const auto begin = static_cast<std::int64_t>(range.begin);
        const auto end = static_cast<std::int64_t>(range.end);
        parts.push_back({static_cast<std::int64_t>(ranges.size()), begin, end});
        ranges.push_back({begin, end, range.decays, range.has_trust_ratio});
        first_part.push_back(static_cast<std::int64_t>(parts.size()));
    }
    if (ranges.empty()) return;
    std::vector<double> sums(2 * parts.size());
    std::vector<float> ratios(ranges.size());
    const kernels::UpdateParts all{parts.data(), static_cast<std::int64_t>(parts.size()),
                                   first_part.data(), sums.data()};
    kernels::UpdateArguments arguments{.parameters = values.parameters.data(),
                                       .gradients = values.gradients.data(),
                                       .states = {values.states[0].data(), values.states[1].data()},
                                       .count = static_cast<std::int64_t>(values.parameters.size()),
                                       .ranges = ranges.data(),
                                       .range_count = static_cast<std::int64_t>(ranges.size()),
                                       .weight_decay = optimizer.weight_decay,
                                       .scalars = &numbers};
    namespace naive = kernels::reference;
    struct Step {
        kernels::UpdateArguments& of;
        const kernels::UpdateParts& parts;
        std::vector<float>& ratios;

        void operator()(const Sgd& rule) const { naive::sgd_step(of, rule, nullptr); }
        void operator()(const Adam& rule) const { naive::adam_step(of, rule, nullptr); }
        void operator()(const AdaGrad& rule) const { naive::adagrad_step(of, rule, nullptr); }
        void operator()(const Lars& rule) const {
            naive::square_sums(of, parts, nullptr);
            naive::lars_ratios(of, rule, parts, ratios.data(), nullptr);
            of.trust_ratios = ratios.data();
            naive::lars_step(of, rule, nullptr);
        }
        void operator()(const Lamb& rule) const {
            naive::lamb_moments(of, rule, parts, nullptr);
            naive::lamb_ratios(of, parts, ratios.data(), nullptr);
            of.trust_ratios = ratios.data();
            naive::lamb_step(of, rule, nullptr);
        }
    };
    std::visit(Step{arguments, all, ratios}, optimizer.rule);
}

}  // namespace hpcai::device
