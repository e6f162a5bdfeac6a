// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "kernels/optimizer.hpp"
#include "kernels/reference/moments.hpp"

namespace hpcai::kernels::reference {

/// Stores the sums of the squares of a part; `other(i)` is the second value at parameter i.
template <typename Other>
void sum_squares(const UpdateArguments& of, const UpdateParts& parts, std::int64_t part,
                 const Other& other) {
    double parameters = 0, others = 0;
    for (std::int64_t i = parts.parts[part].begin; i < parts.parts[part].end; ++i) {
        parameters += std::pow(static_cast<double>(of.parameters[i]), 2);
        others += std::pow(other(i), 2);
    }
    parts.sums[part] = parameters;
    parts.sums[parts.count + part] = others;
}

/// Calls `divisor(range, |w|, |other|)` for ranges that have both norms.
template <typename Divisor>
void set_ratios(const UpdateArguments& of, const UpdateParts& parts, float* ratios,
                double coefficient, const Divisor& divisor) {
    for (std::int64_t index = 0; index < of.range_count; ++index) {
        double parameters = 0, others = 0;
        for (std::int64_t part = parts.first_part[index]; part < parts.first_part[index + 1];
             ++part) {
            parameters += parts.sums[part];
            others += parts.sums[parts.count + part];
        }
        parameters = std::sqrt(parameters);
        others = std::sqrt(others);
        const UpdateRange& range = of.ranges[index];
        const bool has_ratio = range.has_trust_ratio && parameters > 0 && others > 0;
        ratios[index] =
            has_ratio
                ? static_cast<float>(coefficient * parameters / divisor(range, parameters, others))
                : 1.0f;
    }
}

inline void square_sums(const UpdateArguments& of, const UpdateParts& parts, Stream) {
    for (std::int64_t part = 0; part < parts.count; ++part) {
        sum_squares(of, parts, part, [&](std::int64_t i) { return of.gradients[i]; });
    }
}

inline void lamb_moments(const UpdateArguments& of, const ops::Lamb& rule, const UpdateParts& parts,
                         Stream) {
    if (of.scalars->finite == 0) return;
    const Moments moments(rule, *of.scalars);
    for (std::int64_t part = 0; part < parts.count; ++part) {
        const UpdateRange& range = of.ranges[parts.parts[part].range];
        sum_squares(of, parts, part, [&](std::int64_t i) {
            double mean = of.states[0][i], square = of.states[1][i];
            moments.move(mean, square,
                         static_cast<double>(of.gradients[i]) * of.scalars->gradient_factor);
            of.states[0][i] = static_cast<float>(mean);
            of.states[1][i] = static_cast<float>(square);
            const double weight_decay = range.decays ? of.weight_decay : 0;
            return moments.direction(mean, square) + weight_decay * of.parameters[i];
        });
    }
}

inline void lars_ratios(const UpdateArguments& of, const ops::Lars& rule, const UpdateParts& parts,
                        float* ratios, Stream) {
    set_ratios(of, parts, ratios, rule.trust_coefficient,
               [&](const UpdateRange& range, double parameters, double gradients) {
                   const double weight_decay = range.decays ? of.weight_decay : 0;
                   return of.scalars->gradient_factor * gradients + weight_decay * parameters +
                          rule.epsilon;
               });
}

inline void lamb_ratios(const UpdateArguments& of, const UpdateParts& parts, float* ratios,
                        Stream) {
    set_ratios(of, parts, ratios, 1,
               [](const UpdateRange&, double, double moves) { return moves; });
}

}  // namespace hpcai::kernels::reference
