// SPDX-License-Identifier: Apache-2.0
#include "host_numbers.hpp"
#include "sgd.hpp"

namespace hpcai::kernels::reference {
namespace {

void step(const SgdArguments& of, const SgdRange& range, std::int64_t i) {
    const double weight_decay = range.decays ? of.weight_decay : 0;
    double weight = of.parameters[i];
    const double gradient =
        static_cast<double>(of.gradients[i]) * of.numbers->gradient_factor + weight_decay * weight;
    const double velocity = of.momentum * static_cast<double>(of.momentum_buffer[i]) + gradient;
    const double move = of.nesterov ? gradient + of.momentum * velocity : velocity;
    weight -= of.numbers->learning_rate * move;
    of.momentum_buffer[i] = static_cast<float>(velocity);
    of.parameters[i] = static_cast<float>(weight);
    if (range.working_copy == nullptr) return;
    put(of.working_dtype, range.working_copy, i - range.begin, of.parameters[i]);
}

}  // namespace

void sgd(const SgdArguments& arguments, Stream) {
    if (arguments.numbers->finite == 0) return;
    const SgdRange everything{0, arguments.count};
    const bool whole = arguments.range_count == 0;
    const SgdRange* ranges = whole ? &everything : arguments.ranges;
    for (std::int64_t n = 0; n < (whole ? 1 : arguments.range_count); ++n) {
        for (std::int64_t i = ranges[n].begin; i < ranges[n].end; ++i) {
            step(arguments, ranges[n], i);
        }
    }
}

}  // namespace hpcai::kernels::reference
