// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

/// Equations 6 to 8 of the HPC AI500 V3.0 paper, as specified in docs/METRICS.md. An
/// undefined result (division by zero, an infinite, NaN or illegal input) is empty, never NaN.
namespace hpcai::metrics {

/// The work of one group.
struct GroupWork {
    std::int64_t samples_trained = 0;  // over all epochs
    double training_seconds = 0;       // end of start-up to end of last step, without evaluations
    bool finished = true;              // if false, the time counts but the samples do not
};

/// Eq. 6 over the whole run, in FLOP/s: the sum of the finished groups' samples x
/// `training_flops_per_sample`, divided by the longest time of all groups. Empty if no group
/// finished.
std::optional<double> flops(std::span<const GroupWork> groups,
                            std::int64_t training_flops_per_sample);

/// Eq. 6 with samples in place of FLOPs: images per second of the finished groups.
std::optional<double> samples_per_second(std::span<const GroupWork> groups);

/// Eq. 8: (achieved / target)^exponent; above 1 when the target is exceeded. Qualities are
/// fractions: achieved >= 0, target > 0.
std::optional<double> penalty_coefficient(double achieved, double target, double exponent);

/// Eq. 7, in FLOP/s: `flops` x `penalty_coefficient`; empty if a factor is empty.
std::optional<double> vflops(std::optional<double> flops,
                             std::optional<double> penalty_coefficient);

}  // namespace hpcai::metrics
