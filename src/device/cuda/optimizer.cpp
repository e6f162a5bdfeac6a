// SPDX-License-Identifier: Apache-2.0
#include "kernels/optimizer.hpp"

#include <algorithm>

#include <hpcai/base/error.hpp>

#include "context.hpp"

namespace hpcai::device::cuda {
namespace {

template <typename T>
std::unique_ptr<Memory> upload_vector(const std::vector<T>& values, Device& device) {
    auto memory = device.allocate(values.size() * sizeof(T));
    device.upload(memory->data(), std::as_bytes(std::span(values)));
    return memory;
}

/// Prepares the arguments of an optimizer's kernels, with the ranges in device memory.
class FlatUpdate : public Update {
public:
    FlatUpdate(const Optimizer& optimizer, const OptimizerTensors& tensors, const Context& context,
               Device& device)
        : context_(context) {
        check(optimizer, tensors);
        for (const Optimizer::Range& range : optimizer.ranges) {
            if (range.begin == range.end) continue;
            ranges_.push_back({static_cast<std::int64_t>(range.begin),
                               static_cast<std::int64_t>(range.end), range.decays,
                               range.has_trust_ratio, range.working_copy});
        }
        device_ranges_ = upload_vector(ranges_, device);
        arguments_ = {.parameters = tensors.parameters.data(),
                      .gradients = tensors.gradients.data(),
                      .states = {tensors.states[0].data(), tensors.states[1].data()},
                      .working_dtype = optimizer.compute,
                      .rounds_parameters = optimizer.rounds_parameters,
                      .count = static_cast<std::int64_t>(tensors.parameters.size()),
                      .ranges = static_cast<const kernels::UpdateRange*>(device_ranges_->data()),
                      .range_count = static_cast<std::int64_t>(ranges_.size()),
                      .weight_decay = optimizer.weight_decay,
                      .scalars = tensors.scalars};
    }

    void run() final {
        // Kernels treat an empty list of ranges as one range of all elements.
        if (!ranges_.empty()) step();
    }

protected:
    virtual void step() = 0;

    kernels::UpdateArguments& arguments() { return arguments_; }
    const std::vector<kernels::UpdateRange>& ranges() const { return ranges_; }
    kernels::Stream stream() const { return context_.stream; }

private:
    const Context& context_;
    std::vector<kernels::UpdateRange> ranges_;
    std::unique_ptr<Memory> device_ranges_;
    kernels::UpdateArguments arguments_;
};

/// The parts of all ranges, and memory for their sums and trust ratios.
class TrustRatios {
public:
    TrustRatios(const std::vector<kernels::UpdateRange>& ranges, Device& device) {
        std::vector<kernels::UpdatePart> parts;
        std::vector<std::int64_t> first_part{0};
        for (std::size_t index = 0; index < ranges.size(); ++index) {
            const auto [begin, end, decays, has_ratio, copy] = ranges[index];
            for (std::int64_t at = begin; at < end; at += kPartElements) {
                parts.push_back(
                    {static_cast<std::int64_t>(index), at, std::min(at + kPartElements, end)});
            }
            first_part.push_back(static_cast<std::int64_t>(parts.size()));
        }
        parts_ = upload_vector(parts, device);
        first_part_ = upload_vector(first_part, device);
        sums_ = device.allocate(2 * parts.size() * sizeof(double));
        ratios_ = device.allocate(ranges.size() * sizeof(float));
        count_ = static_cast<std::int64_t>(parts.size());
    }

    kernels::UpdateParts parts() const {
        return {static_cast<const kernels::UpdatePart*>(parts_->data()), count_,
                static_cast<const std::int64_t*>(first_part_->data()),
                static_cast<double*>(sums_->data())};
    }
    float* ratios() const { return static_cast<float*>(ratios_->data()); }

private:
    static constexpr std::int64_t kPartElements = 1 << 13;

    std::unique_ptr<Memory> parts_, first_part_, sums_, ratios_;
    std::int64_t count_ = 0;
};

/// The update by one rule; step() is specialized for each rule.
template <typename Rule>
class RuleUpdate final : public FlatUpdate {
public:
    RuleUpdate(const Rule& rule, const Optimizer& optimizer, const OptimizerTensors& tensors,
               const Context& context, Device& device)
        : FlatUpdate(optimizer, tensors, context, device), rule_(rule) {
        if constexpr (std::is_same_v<Rule, Lars> || std::is_same_v<Rule, Lamb>) {
            ratios_.emplace(ranges(), device);
            arguments().trust_ratios = ratios_->ratios();
        }
    }

private:
    void step() override;

    const Rule rule_;
    std::optional<TrustRatios> ratios_;
};

template <>
void RuleUpdate<Sgd>::step() {
    kernels::sgd_step(arguments(), rule_, stream());
}

template <>
void RuleUpdate<Lars>::step() {
    kernels::square_sums(arguments(), ratios_->parts(), stream());
    kernels::lars_ratios(arguments(), rule_, ratios_->parts(), ratios_->ratios(), stream());
    kernels::lars_step(arguments(), rule_, stream());
}

template <>
void RuleUpdate<Lamb>::step() {
    kernels::lamb_moments(arguments(), rule_, ratios_->parts(), stream());
    kernels::lamb_ratios(arguments(), ratios_->parts(), ratios_->ratios(), stream());
    kernels::lamb_step(arguments(), rule_, stream());
}

template <>
void RuleUpdate<Adam>::step() {
    kernels::adam_step(arguments(), rule_, stream());
}

template <>
void RuleUpdate<AdaGrad>::step() {
    kernels::adagrad_step(arguments(), rule_, stream());
}

}  // namespace

std::unique_ptr<Update> build_update(const Optimizer& optimizer, const OptimizerTensors& tensors,
                                     const Context& context, Device& device) {
    ensure(optimizer.exchange == nullptr, "the CUDA engine has no trust ratios over shards");
    const auto build = [&]<typename Rule>(const Rule& rule) -> std::unique_ptr<Update> {
        return std::make_unique<RuleUpdate<Rule>>(rule, optimizer, tensors, context, device);
    };
    return std::visit(build, optimizer.rule);
}

}  // namespace hpcai::device::cuda
