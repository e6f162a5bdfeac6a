// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/base/error.hpp>

#include "context.hpp"

namespace hpcai::device::cpu {
namespace {

/// The bias corrections 1 - beta^t of this step, in double because fp32 is not precise enough.
struct Corrections {
    double first_moment, second_moment;

    Corrections(double beta1, double beta2, const StepScalars& scalars) {
        const double step = static_cast<double>(scalars.taken_steps) + 1;
        first_moment = 1 - std::pow(beta1, step);
        second_moment = 1 - std::pow(beta2, step);
    }
};

MomentCoefficients moment_coefficients(double beta1, double beta2, float gradient_decay,
                                       const StepScalars& scalars) {
    return {scalars.gradient_factor,   gradient_decay,
            static_cast<float>(beta1), static_cast<float>(1 - beta1),
            static_cast<float>(beta2), static_cast<float>(1 - beta2)};
}

/// An optimizer step. Threads process parts of the ranges. Sums over parts are added in a fixed
/// order, so that they do not depend on the number of threads.
class FlatUpdate final : public Update {
public:
    FlatUpdate(const Optimizer& optimizer, const OptimizerTensors& tensors, const Context& context)
        : optimizer_(optimizer),
          tensors_(tensors),
          loops_(*context.loops),
          ratios_(optimizer.ranges.size(), 1.0F) {
        check(optimizer, tensors);
        ensure(!optimizer.rounds_parameters, "the CPU engine cannot round parameters");
        for (std::size_t index = 0; index < optimizer.ranges.size(); ++index) {
            const Optimizer::Range& range = optimizer.ranges[index];
            ensure(range.working_copy == nullptr, "a CPU optimizer updates no working copies");
            for (std::size_t begin = range.begin; begin < range.end; begin += kPartElements) {
                parts_.push_back({index, begin, std::min(begin + kPartElements, range.end), {}});
            }
        }
    }

    void run() override {
        if (scalars_->finite == 0) return;
        std::visit([this](const auto& rule) { step(rule); }, optimizer_.rule);
    }

private:
    static constexpr std::size_t kPartElements = 1 << 14;

    /// Consecutive elements of one range, which one thread processes.
    struct Part {
        std::size_t range;  // index in Optimizer::ranges
        std::size_t begin;
        std::size_t end;
        SquareSums sums;  // for trust ratios
    };

    void step(const Sgd& rule) {
        for_each_part([&](const Part& part, const StepSpan& span) {
            if (rule.momentum_correction) {
                loops_.sgd(span, {scalars_->learning_rate, scalars_->gradient_factor, rule.momentum,
                                  decay_of(part), rule.nesterov});
            } else {
                loops_.momentum_step(
                    span, {scalars_->gradient_factor, rule.momentum, decay_of(part), rule.nesterov,
                           scalars_->learning_rate, 1});
            }
        });
    }

    void step(const Lars& rule) {
        for_each_part([&](Part& part, const StepSpan& span) {
            const bool has_ratio = optimizer_.ranges[part.range].has_trust_ratio;
            if (has_ratio) part.sums = loops_.square_sums(span);
        });
        const float rate = scalars_->learning_rate, factor = scalars_->gradient_factor;
        set_ratios([&](const Optimizer::Range& range, double parameter_norm, double gradient_norm) {
            const double decay = range.decays ? optimizer_.weight_decay : 0;
            return rule.trust_coefficient * parameter_norm /
                   (factor * gradient_norm + decay * parameter_norm + rule.epsilon);
        });
        for_each_part([&](const Part& part, const StepSpan& span) {
            const float ratio = ratios_[part.range];
            const bool corrected = rule.momentum_correction;
            loops_.momentum_step(span, {factor, rule.momentum, decay_of(part), rule.nesterov,
                                        corrected ? ratio : ratio * rate, corrected ? rate : 1});
        });
    }

    void step(const Adam& rule) {
        const Corrections corrections(rule.beta1, rule.beta2, *scalars_);
        const double rate = scalars_->learning_rate;
        for_each_part([&](const Part& part, const StepSpan& span) {
            const float decay = decay_of(part);
            loops_.adam(
                span,
                {.moments = moment_coefficients(rule.beta1, rule.beta2,
                                                rule.decoupled_decay ? 0 : decay, *scalars_),
                 .decay_factor = rule.decoupled_decay ? static_cast<float>(1 - rate * decay) : 1,
                 .rate = static_cast<float>(rate / corrections.first_moment),
                 .root_scale = static_cast<float>(1 / std::sqrt(corrections.second_moment)),
                 .epsilon = static_cast<float>(rule.epsilon)});
        });
    }

    void step(const Lamb& rule) {
        const Corrections corrections(rule.beta1, rule.beta2, *scalars_);
        const auto coefficients = [&](const Part& part) {
            return LambCoefficients{moment_coefficients(rule.beta1, rule.beta2, 0, *scalars_),
                                    static_cast<float>(1 / corrections.first_moment),
                                    static_cast<float>(1 / std::sqrt(corrections.second_moment)),
                                    static_cast<float>(rule.epsilon), decay_of(part)};
        };
        for_each_part([&](Part& part, const StepSpan& span) {
            part.sums = loops_.lamb_moments(span, coefficients(part));
        });
        set_ratios([](const Optimizer::Range&, double parameter_norm, double direction_norm) {
            return parameter_norm / direction_norm;
        });
        for_each_part([&](const Part& part, const StepSpan& span) {
            loops_.lamb_step(span, coefficients(part),
                             scalars_->learning_rate * ratios_[part.range]);
        });
    }

    void step(const AdaGrad& rule) {
        for_each_part([&](const Part& part, const StepSpan& span) {
            loops_.adagrad(span, {scalars_->gradient_factor, decay_of(part),
                                  scalars_->learning_rate, rule.epsilon});
        });
    }

    void for_each_part(const auto& body) {
        const auto count = static_cast<std::int64_t>(parts_.size());
#pragma omp parallel for schedule(static)
        for (std::int64_t index = 0; index < count; ++index) {
            body(parts_[index], span_of(parts_[index]));
        }
    }

    StepSpan span_of(const Part& part) const {
        const auto state = [&](std::span<float> all) {
            return all.empty() ? nullptr : all.data() + part.begin;
        };
        return {tensors_.parameters.data() + part.begin, tensors_.gradients.data() + part.begin,
                state(tensors_.states[0]), state(tensors_.states[1]), part.end - part.begin};
    }

    float decay_of(const Part& part) const {
        return optimizer_.ranges[part.range].decays ? optimizer_.weight_decay : 0;
    }

    /// Sets each trust ratio from Part::sums: to `ratio(range, |w|, |other|)` if the range has a
    /// ratio and neither norm is 0, else to 1. |other| is the norm of the gradient for LARS, of the
    /// update direction for LAMB.
    void set_ratios(const auto& ratio) {
        std::vector<double> sums(2 * ratios_.size());  // (ranges, 2)
        for (const Part& part : parts_) {
            sums[2 * part.range] += part.sums.parameters;
            sums[2 * part.range + 1] += part.sums.others;
        }
        // Each shard of the network has some channels of each parameter.
        if (optimizer_.exchange != nullptr) sum_over_shards(*optimizer_.exchange, sums);
        for (std::size_t index = 0; index < ratios_.size(); ++index) {
            const Optimizer::Range& range = optimizer_.ranges[index];
            const double parameters = std::sqrt(sums[2 * index]);
            const double others = std::sqrt(sums[2 * index + 1]);
            const bool has_ratio = range.has_trust_ratio && parameters > 0 && others > 0;
            ratios_[index] =
                has_ratio ? static_cast<float>(ratio(range, parameters, others)) : 1.0F;
        }
    }

    const Optimizer optimizer_;
    const OptimizerTensors tensors_;
    const StepScalars* const scalars_ = tensors_.scalars;
    const SimdKernels& loops_;
    std::vector<Part> parts_;
    std::vector<float> ratios_;  // [range] trust ratios of LARS and LAMB
};

}  // namespace

std::unique_ptr<Update> build_update(const Optimizer& optimizer, const OptimizerTensors& tensors,
                                     const Context& context) {
    return std::make_unique<FlatUpdate>(optimizer, tensors, context);
}

}  // namespace hpcai::device::cpu
