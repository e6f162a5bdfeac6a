// SPDX-License-Identifier: Apache-2.0
#include "update.hpp"

#include <algorithm>
#include <cmath>

#include <hpcai/base/error.hpp>

namespace hpcai::device::cpu {
namespace {

class SgdUpdate final : public Update {
public:
    SgdUpdate(const Sgd& sgd, const SgdTensors& tensors, const Context& context)
        : sgd_(sgd), tensors_(tensors), context_(context) {
        const std::size_t elements = tensors.parameters.size();
        ensure(tensors.gradients.size() == elements && tensors.momentum.size() == elements,
               "SGD on {} parameters with {} gradients and {} velocities", elements,
               tensors.gradients.size(), tensors.momentum.size());
        for (const Sgd::Range& range : sgd.ranges) {
            ensure(range.begin <= range.end && range.end <= elements,
                   "SGD on elements {} to {} of {}", range.begin, range.end, elements);
            ensure(range.working_copy == nullptr, "a CPU's kernels keep no plain copies");
            for (std::size_t begin = range.begin; begin < range.end; begin += kPart) {
                parts_.push_back(
                    {begin, std::min(begin + kPart, range.end), range.decays, nullptr});
            }
        }
    }

    void run() override {
        const StepNumbers& numbers = *tensors_.numbers;
        if (numbers.finite == 0) return;
        const auto parts = static_cast<std::int64_t>(parts_.size());
#pragma omp parallel for schedule(static)
        for (std::int64_t index = 0; index < parts; ++index) {
            const Sgd::Range& part = parts_[static_cast<std::size_t>(index)];
            context_.loops->sgd(
                {tensors_.parameters.data() + part.begin, tensors_.gradients.data() + part.begin,
                 tensors_.momentum.data() + part.begin, part.end - part.begin},
                {numbers.learning_rate, numbers.gradient_factor, sgd_.momentum,
                 part.decays ? sgd_.weight_decay : 0, sgd_.nesterov});
        }
    }

private:
    static constexpr std::size_t kPart = 1 << 14;

    Sgd sgd_;
    SgdTensors tensors_;
    const Context& context_;
    std::vector<Sgd::Range> parts_;  // of at most kPart elements
};

}  // namespace

std::unique_ptr<Update> build_sgd(const Sgd& sgd, const SgdTensors& tensors,
                                  const Context& context) {
    return std::make_unique<SgdUpdate>(sgd, tensors, context);
}

void check_finite(std::span<const float> values, StepNumbers& numbers) {
    const auto count = static_cast<std::int64_t>(values.size());
    bool all = true;
#pragma omp parallel for schedule(static) reduction(&& : all)
    for (std::int64_t i = 0; i < count; ++i) {
        all = all && std::isfinite(values[static_cast<std::size_t>(i)]);
    }
    if (!all) numbers.finite = 0;
}

void finish_step(const LossScalePolicy& policy, StepNumbers& numbers) {
    const bool good = numbers.finite != 0;
    numbers.good_steps = good ? numbers.good_steps + 1 : 0;
    numbers.skipped_steps += good ? 0 : 1;
    if (policy.dynamic && !good) {
        numbers.loss_scale = std::max(numbers.loss_scale / 2, policy.smallest);
    } else if (policy.dynamic && numbers.good_steps >= policy.good_steps_to_double) {
        numbers.good_steps = 0;
        if (numbers.loss_scale * 2 <= policy.largest) numbers.loss_scale *= 2;
    }
    numbers.gradient_factor = policy.loss_weight / numbers.loss_scale;
    numbers.finite = 1;
}

}  // namespace hpcai::device::cpu
