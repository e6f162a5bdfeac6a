// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "kernels/host_numbers.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/reference/moments.hpp"

namespace hpcai::kernels::reference {

/// One element's scalars in double.
struct Element {
    double weight, gradient;  // gradient multiplied by gradient_factor
    double states[2];
    double weight_decay, trust_ratio;
};

/// Calls `step(element)` for all elements of all ranges and stores its results.
template <typename Step>
void over_elements(const UpdateArguments& of, const Step& step) {
    if (of.scalars->finite == 0) return;
    const UpdateRange everything{0, of.count};
    const bool whole = of.range_count == 0;
    for (std::int64_t n = 0; n < (whole ? 1 : of.range_count); ++n) {
        const UpdateRange& range = whole ? everything : of.ranges[n];
        for (std::int64_t i = range.begin; i < range.end; ++i) {
            Element element{of.parameters[i],
                            static_cast<double>(of.gradients[i]) * of.scalars->gradient_factor,
                            {},
                            range.decays ? of.weight_decay : 0.0,
                            of.trust_ratios == nullptr ? 1.0 : of.trust_ratios[n]};
            for (int state = 0; state < 2; ++state) {
                if (of.states[state] != nullptr) element.states[state] = of.states[state][i];
            }
            step(element);
            of.parameters[i] = static_cast<float>(element.weight);
            if (of.rounds_parameters) {
                std::uint32_t stored = 0;
                put(of.working_dtype, &stored, 0, of.parameters[i]);
                of.parameters[i] = static_cast<float>(get(of.working_dtype, &stored, 0));
            }
            for (int state = 0; state < 2; ++state) {
                if (of.states[state] == nullptr) continue;
                of.states[state][i] = static_cast<float>(element.states[state]);
            }
            if (range.working_copy == nullptr) continue;
            put(of.working_dtype, range.working_copy, i - range.begin, of.parameters[i]);
        }
    }
}

template <typename Rule>
void momentum_step(const UpdateArguments& of, const Rule& rule) {
    const double rate = of.scalars->learning_rate;
    over_elements(of, [&](Element& at) {
        double share = at.trust_ratio * (at.gradient + at.weight_decay * at.weight);
        if (!rule.momentum_correction) share *= rate;
        at.states[0] = rule.momentum * at.states[0] + share;
        const double move = rule.nesterov ? share + rule.momentum * at.states[0] : at.states[0];
        at.weight -= rule.momentum_correction ? rate * move : move;
    });
}

inline void sgd_step(const UpdateArguments& arguments, const ops::Sgd& rule, Stream) {
    momentum_step(arguments, rule);
}

inline void lars_step(const UpdateArguments& arguments, const ops::Lars& rule, Stream) {
    momentum_step(arguments, rule);
}

inline void adam_step(const UpdateArguments& of, const ops::Adam& rule, Stream) {
    const double rate = of.scalars->learning_rate;
    const Moments moments(rule, *of.scalars);
    over_elements(of, [&](Element& at) {
        if (rule.decoupled_decay) {
            at.weight *= 1 - rate * at.weight_decay;
        } else {
            at.gradient += at.weight_decay * at.weight;
        }
        moments.move(at.states[0], at.states[1], at.gradient);
        at.weight -= rate * moments.direction(at.states[0], at.states[1]);
    });
}

inline void adagrad_step(const UpdateArguments& of, const ops::AdaGrad& rule, Stream) {
    over_elements(of, [&](Element& at) {
        at.gradient += at.weight_decay * at.weight;
        at.states[0] += at.gradient * at.gradient;
        at.weight -= of.scalars->learning_rate * at.gradient /
                     (std::sqrt(at.states[0]) + static_cast<double>(rule.epsilon));
    });
}

inline void lamb_step(const UpdateArguments& of, const ops::Lamb& rule, Stream) {
    const Moments moments(rule, *of.scalars);
    over_elements(of, [&](Element& at) {
        const double move =
            moments.direction(at.states[0], at.states[1]) + at.weight_decay * at.weight;
        at.weight -= of.scalars->learning_rate * at.trust_ratio * move;
    });
}

}  // namespace hpcai::kernels::reference
