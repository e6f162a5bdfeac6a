// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include <hpcai/ops/optimizer_rule.hpp>

namespace hpcai::kernels::reference {

/// The moving means of Adam and LAMB in double.
class Moments {
public:
    template <typename Rule>
    Moments(const Rule& rule, const ops::StepScalars& numbers)
        : beta1_(rule.beta1),
          beta2_(rule.beta2),
          epsilon_(rule.epsilon),
          step_(static_cast<double>(numbers.taken_steps) + 1) {}

    void move(double& mean, double& square, double gradient) const {
        mean = beta1_ * mean + (1 - beta1_) * gradient;
        square = beta2_ * square + (1 - beta2_) * gradient * gradient;
    }
    double direction(double mean, double square) const {
        return mean / (1 - std::pow(beta1_, step_)) /
               (std::sqrt(square / (1 - std::pow(beta2_, step_))) + epsilon_);
    }

private:
    double beta1_, beta2_, epsilon_;
    double step_;  // from 1
};

}  // namespace hpcai::kernels::reference
