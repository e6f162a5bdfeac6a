// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>
#include <hpcai/device/optimizer.hpp>

namespace hpcai::device {

int state_count(const OptimizerRule& rule) {
    struct Count {
        int operator()(const Sgd&) const { return 1; }
        int operator()(const Lars&) const { return 1; }
        int operator()(const Lamb&) const { return 2; }
        int operator()(const Adam&) const { return 2; }
        int operator()(const AdaGrad&) const { return 1; }
    };
    return std::visit(Count{}, rule);
}

void check(const Optimizer& optimizer, const OptimizerTensors& tensors) {
    const std::size_t elements = tensors.parameters.size();
    ensure(tensors.gradients.size() == elements, "the optimizer has {} parameters but {} gradients",
           elements, tensors.gradients.size());
    for (int state = 0; state < state_count(optimizer.rule); ++state) {
        const std::size_t size = tensors.states[state].size();
        ensure(size == elements, "the optimizer has {} parameters but {} elements of state {}",
               elements, size, state);
    }
    std::size_t previous_end = 0;
    for (const Optimizer::Range& range : optimizer.ranges) {
        ensure(range.begin % 8 == 0 && previous_end <= range.begin && range.begin <= range.end &&
                   range.end <= elements,
               "invalid optimizer range {} to {} of {} elements, after {}", range.begin, range.end,
               elements, previous_end);
        previous_end = range.end;
    }
}

}  // namespace hpcai::device
