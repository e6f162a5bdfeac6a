// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/base/error.hpp>

#include "context.hpp"

namespace hpcai::device::cpu {
namespace {

/// Consecutive elements of one Optimizer::Range, which one thread processes. Sums over parts are
/// added in a fixed order, so that they do not depend on the number of threads.
struct Part {
    std::size_t range;  // index in Optimizer::ranges
    std::size_t begin;
    std::size_t end;
};

/// The base class of all rules: divides the ranges into parts.
class FlatUpdate : public Update {
public:
    FlatUpdate(const Optimizer& optimizer, const OptimizerTensors& tensors, const Context& context)
        : optimizer_(optimizer), tensors_(tensors), context_(context) {
        check(optimizer, tensors);
        ensure(!optimizer.rounds_parameters, "the CPU engine needs fp32 parameters");
        for (std::size_t index = 0; index < optimizer.ranges.size(); ++index) {
            const Optimizer::Range& range = optimizer.ranges[index];
            ensure(range.working_copy == nullptr, "a CPU optimizer updates no working copies");
            for (std::size_t begin = range.begin; begin < range.end; begin += kPartElements) {
                parts_.push_back({index, begin, std::min(begin + kPartElements, range.end)});
            }
        }
    }

    void run() final {
        if (scalars().finite != 0) step();
    }

protected:
    virtual void step() = 0;

    /// Calls `body(part, span)` for each part, in parallel.
    template <typename Body>
    void for_each_part(const Body& body) const {
        const auto parts = static_cast<std::int64_t>(parts_.size());
#pragma omp parallel for schedule(static)
        for (std::int64_t index = 0; index < parts; ++index) {
            const Part& part = parts_[index];
            body(part, span_of(part));
        }
    }

    const Optimizer::Range& range_of(const Part& part) const {
        return optimizer_.ranges[part.range];
    }
    float decay_of(const Part& part) const {
        return range_of(part).decays ? optimizer_.weight_decay : 0;
    }
    std::size_t index_of(const Part& part) const {
        return static_cast<std::size_t>(&part - parts_.data());
    }
    const StepScalars& scalars() const {
        return *tensors_.scalars;
    }
    const SimdKernels& loops() const {
        return *context_.loops;
    }
    const std::vector<Part>& parts() const {
        return parts_;
    }
    const Optimizer& optimizer() const {
        return optimizer_;
    }

private:
    static constexpr std::size_t kPartElements = 1 << 14;

    StepSpan span_of(const Part& part) const {
        const auto state = [&](std::span<float> all) {
            return all.empty() ? nullptr : all.data() + part.begin;
        };
        return {tensors_.parameters.data() + part.begin, tensors_.gradients.data() + part.begin,
                state(tensors_.states[0]), state(tensors_.states[1]), part.end - part.begin};
    }

    Optimizer optimizer_;
    OptimizerTensors tensors_;
    const Context& context_;
    std::vector<Part> parts_;
};

/// Computes the trust ratios of the ranges from sums of squares.
class TrustRatios {
public:
    explicit TrustRatios(const Optimizer& optimizer)
        : ranges_(optimizer.ranges),
          exchange_(optimizer.exchange),
          ratios_(optimizer.ranges.size(), 1.0F) {}

    /// Sets each ratio to `ratio(range, |w|, |other|)` if the range has a ratio and neither norm is
    /// 0, else to 1. |other| is the norm of the gradient for LARS, of the update direction for
    /// LAMB. `part_sums` has one entry per part.
    template <typename Ratio>
    void set(const std::vector<Part>& parts, const std::vector<SquareSums>& part_sums,
             const Ratio& ratio) {
        sums_.assign(ranges_.size(), {});
        for (std::size_t index = 0; index < parts.size(); ++index) {
            SquareSums& sum = sums_[parts[index].range];
            sum.parameters += part_sums[index].parameters;
            sum.others += part_sums[index].others;
        }
        if (exchange_ != nullptr) all_reduce_sums();
        for (std::size_t index = 0; index < ranges_.size(); ++index) {
            if (!ranges_[index].has_trust_ratio) continue;
            const auto& [parameters, others] = sums_[index];
            const bool has_both = parameters > 0 && others > 0;
            ratios_[index] = has_both
                                 ? static_cast<float>(ratio(ranges_[index], std::sqrt(parameters),
                                                            std::sqrt(others)))
                                 : 1.0F;
        }
    }
    float operator[](const Part& part) const { return ratios_[part.range]; }

private:
    /// Sums over all shards of the network; each shard has some channels of each parameter.
    void all_reduce_sums() {
        std::vector<double> sums;
        for (const SquareSums& sum : sums_) {
            sums.push_back(sum.parameters);
            sums.push_back(sum.others);
        }
        sum_over_shards(*exchange_, sums);
        for (std::size_t index = 0; index < sums_.size(); ++index) {
            sums_[index] = {sums[2 * index], sums[2 * index + 1]};
        }
    }

    std::vector<Optimizer::Range> ranges_;
    ShardExchange* exchange_;
    std::vector<SquareSums> sums_;
    std::vector<float> ratios_;  // [range]
};

/// A step of one rule; step() is specialized for each rule.
template <typename Rule>
class RuleUpdate final : public FlatUpdate {
public:
    RuleUpdate(const Rule& rule, const Optimizer& optimizer, const OptimizerTensors& tensors,
               const Context& context)
        : FlatUpdate(optimizer, tensors, context), rule_(rule) {}

private:
    void step() override;

    const Rule rule_;
    // Only LARS and LAMB use the following members.
    TrustRatios ratios_{optimizer()};
    std::vector<SquareSums> sums_ = std::vector<SquareSums>(parts().size());
};

template <>
void RuleUpdate<Sgd>::step() {
    const float rate = scalars().learning_rate, factor = scalars().gradient_factor;
    if (rule_.momentum_correction) {
        for_each_part([&](const Part& part, const StepSpan& span) {
            loops().sgd(span, {rate, factor, rule_.momentum, decay_of(part), rule_.nesterov});
        });
        return;
    }
    for_each_part([&](const Part& part, const StepSpan& span) {
        loops().momentum_step(span,
                              {factor, rule_.momentum, decay_of(part), rule_.nesterov, rate, 1});
    });
}

template <>
void RuleUpdate<Lars>::step() {
    for_each_part([&](const Part& part, const StepSpan& span) {
        if (range_of(part).has_trust_ratio) sums_[index_of(part)] = loops().square_sums(span);
    });
    const float rate = scalars().learning_rate, factor = scalars().gradient_factor;
    ratios_.set(parts(), sums_,
                [&](const Optimizer::Range& range, double parameters, double gradients) {
                    const double decay = range.decays ? optimizer().weight_decay : 0;
                    return rule_.trust_coefficient * parameters /
                           (factor * gradients + decay * parameters + rule_.epsilon);
                });
    for_each_part([&](const Part& part, const StepSpan& span) {
        const float ratio = ratios_[part];
        const bool corrected = rule_.momentum_correction;
        loops().momentum_step(span, {factor, rule_.momentum, decay_of(part), rule_.nesterov,
                                     corrected ? ratio : ratio * rate, corrected ? rate : 1});
    });
}

/// The bias corrections 1 - beta^t of this step, in double because fp32 is not precise enough.
struct Corrections {
    double mean, square;

    Corrections(double beta1, double beta2, const StepScalars& scalars) {
        const double step = static_cast<double>(scalars.taken_steps) + 1;
        mean = 1 - std::pow(beta1, step);
        square = 1 - std::pow(beta2, step);
    }
};

MomentCoefficients moment_coefficients(double beta1, double beta2, float gradient_decay,
                                       const StepScalars& scalars) {
    return {scalars.gradient_factor,   gradient_decay,
            static_cast<float>(beta1), static_cast<float>(1 - beta1),
            static_cast<float>(beta2), static_cast<float>(1 - beta2)};
}

template <>
void RuleUpdate<Adam>::step() {
    const Corrections corrections(rule_.beta1, rule_.beta2, scalars());
    const double rate = scalars().learning_rate;
    AdamCoefficients common{};
    common.rate = static_cast<float>(rate / corrections.mean);
    common.root_scale = static_cast<float>(1 / std::sqrt(corrections.square));
    common.epsilon = static_cast<float>(rule_.epsilon);
    for_each_part([&](const Part& part, const StepSpan& span) {
        const float decay = decay_of(part);
        AdamCoefficients c = common;
        c.moments = moment_coefficients(rule_.beta1, rule_.beta2, rule_.decoupled_decay ? 0 : decay,
                                        scalars());
        c.decay_factor = rule_.decoupled_decay ? static_cast<float>(1 - rate * decay) : 1;
        loops().adam(span, c);
    });
}

template <>
void RuleUpdate<Lamb>::step() {
    const Corrections corrections(rule_.beta1, rule_.beta2, scalars());
    const auto coefficients = [&](const Part& part) {
        return LambCoefficients{moment_coefficients(rule_.beta1, rule_.beta2, 0, scalars()),
                                static_cast<float>(1 / corrections.mean),
                                static_cast<float>(1 / std::sqrt(corrections.square)),
                                static_cast<float>(rule_.epsilon), decay_of(part)};
    };
    for_each_part([&](const Part& part, const StepSpan& span) {
        sums_[index_of(part)] = loops().lamb_moments(span, coefficients(part));
    });
    ratios_.set(parts(), sums_, [](const Optimizer::Range&, double parameters, double directions) {
        return parameters / directions;
    });
    for_each_part([&](const Part& part, const StepSpan& span) {
        loops().lamb_step(span, coefficients(part), scalars().learning_rate * ratios_[part]);
    });
}

template <>
void RuleUpdate<AdaGrad>::step() {
    for_each_part([&](const Part& part, const StepSpan& span) {
        loops().adagrad(span, {scalars().gradient_factor, decay_of(part), scalars().learning_rate,
                               rule_.epsilon});
    });
}

}  // namespace

std::unique_ptr<Update> build_update(const Optimizer& optimizer, const OptimizerTensors& tensors,
                                     const Context& context) {
    const auto build = [&]<typename Rule>(const Rule& rule) -> std::unique_ptr<Update> {
        return std::make_unique<RuleUpdate<Rule>>(rule, optimizer, tensors, context);
    };
    return std::visit(build, optimizer.rule);
}

}  // namespace hpcai::device::cpu
