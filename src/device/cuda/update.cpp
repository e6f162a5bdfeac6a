// SPDX-License-Identifier: Apache-2.0
#include "update.hpp"

#include <hpcai/base/error.hpp>

#include "kernels/sgd.hpp"

namespace hpcai::device::cuda {
namespace {

class SgdUpdate final : public Update {
public:
    SgdUpdate(const Sgd& sgd, const SgdTensors& tensors, const Context& context, Device& device)
        : context_(context) {
        const std::size_t elements = tensors.parameters.size();
        ensure(tensors.gradients.size() == elements && tensors.momentum.size() == elements,
               "SGD on {} parameters with {} gradients and {} velocities", elements,
               tensors.gradients.size(), tensors.momentum.size());
        std::vector<kernels::SgdRange> ranges;
        for (const Sgd::Range& range : sgd.ranges) {
            ensure(range.begin % 8 == 0 && range.begin <= range.end && range.end <= elements,
                   "SGD on elements {} to {} of {}", range.begin, range.end, elements);
            if (range.begin == range.end) continue;
            ranges.push_back({static_cast<std::int64_t>(range.begin),
                              static_cast<std::int64_t>(range.end), range.decays,
                              range.working_copy});
        }
        ranges_ = device.allocate(ranges.size() * sizeof(kernels::SgdRange));
        device.upload(ranges_->data(), std::as_bytes(std::span(ranges)));
        arguments_ = {.parameters = tensors.parameters.data(),
                      .gradients = tensors.gradients.data(),
                      .momentum_buffer = tensors.momentum.data(),
                      .working_dtype = sgd.compute,
                      .count = static_cast<std::int64_t>(elements),
                      .ranges = static_cast<const kernels::SgdRange*>(ranges_->data()),
                      .range_count = static_cast<std::int64_t>(ranges.size()),
                      .momentum = sgd.momentum,
                      .weight_decay = sgd.weight_decay,
                      .nesterov = sgd.nesterov,
                      .numbers = tensors.numbers};
    }

    void run() override {
        // To the kernel no range at all means that everything is one.
        if (arguments_.range_count > 0) kernels::sgd(arguments_, context_.stream);
    }

private:
    const Context& context_;
    std::unique_ptr<Memory> ranges_;
    kernels::SgdArguments arguments_;
};

}  // namespace

std::unique_ptr<Update> build_sgd(const Sgd& sgd, const SgdTensors& tensors, const Context& context,
                                  Device& device) {
    return std::make_unique<SgdUpdate>(sgd, tensors, context, device);
}

}  // namespace hpcai::device::cuda
