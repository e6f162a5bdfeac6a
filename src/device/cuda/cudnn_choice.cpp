// SPDX-License-Identifier: Apache-2.0
#include "cudnn_choice.hpp"

#include <algorithm>

#include <fmt/core.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>

#include "plan_cache.hpp"

namespace hpcai::device::cuda {
namespace {

using O = Operand;

std::int64_t elements_of(Operand operand, const ConvolutionShape& shape) {
    switch (operand) {
        case O::image:
            return shape.images * shape.height * shape.width * shape.channels;
        case O::filters:
        case O::gradient:
            return shape.filters * shape.kernel * shape.kernel_width() * shape.channels;
        case O::output:
            return shape.images * shape.output_height() * shape.output_width() * shape.filters;
        default:
            return shape.filters;
    }
}

}  // namespace

int first_usable(ConvolutionPlans& plans, const std::set<std::string>& barred) {
    int best = -1;
    for (int plan = 0; plan < plans.count(); ++plan) {
        if (barred.contains(plans.name(plan)) || !plans.finalize(plan)) continue;
        if (plans.workspace_bytes(plan) <= kMaxPlanWorkspaceBytes) return plan;
        if (best < 0 || plans.workspace_bytes(plan) < plans.workspace_bytes(best)) best = plan;
    }
    return best;
}

DType type_of(Operand operand, DType shape_type) {
    return operand == O::sum || operand == O::square_sum ? DType::f32 : shape_type;
}

std::size_t bytes_of(Operand operand, const ConvolutionShape& shape) {
    return static_cast<std::size_t>(elements_of(operand, shape)) *
           size_of(type_of(operand, shape.dtype));
}

std::string plan_key(const ConvolutionShape& shape, ConvolutionPass pass) {
    return fmt::format("{} {}", name_of(pass), to_string(shape));
}

bool has_plan(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context) {
    const std::string key = plan_key(shape, pass);
    if (!context.plans->find(key).empty()) return true;
    try {
        ConvolutionPlans plans(shape, pass, context, ConvolutionPlans::Search::quick);
        return first_usable(plans, context.plans->barred(key)) >= 0;
    } catch (const Error&) {
        return false;  // cuDNN does not support this graph
    }
}

ChosenPlan::ChosenPlan(const ConvolutionShape& shape, ConvolutionPass pass,
                       const Context& context) {
    using Search = ConvolutionPlans::Search;
    const std::string key = plan_key(shape, pass);
    const std::string known = context.plans->find(key);
    const bool may_time = context.has_device() && context.autotune;
    const Search search = may_time || !known.empty() ? Search::all : Search::quick;
    plans_ = std::make_unique<ConvolutionPlans>(shape, pass, context, search);
    if (!known.empty()) select(known);
    if (plan_ < 0 && may_time) {
        const Stopwatch watch;
        plan_ = find_fastest(*plans_, shape, pass, context);
        if (plan_ >= 0) {
            const std::string fastest = name();
            // A new graph, because the old one keeps the code of all timed plans on the GPU.
            plans_ = std::make_unique<ConvolutionPlans>(shape, pass, context, search);
            select(fastest);
        }
        if (plan_ >= 0) context.plans->insert(key, name());
        ++context.tuning->convolutions;
        context.tuning->seconds += watch.seconds();
    }
    if (plan_ < 0) plan_ = first_usable(*plans_, context.plans->barred(key));
    ensure(plan_ >= 0, "none of the {} plans of cuDNN can be used for {}", plans_->count(), key);
}

void ChosenPlan::select(const std::string& plan_name) {
    int index = 0;
    while (index < plans_->count() && plans_->name(index) != plan_name) ++index;
    plan_ = index < plans_->count() && plans_->finalize(index) ? index : -1;
}

bool reads_blocks(const ops::Convolution& op, const KernelOptions& options) {
    const std::int64_t channels = stored_channels(op.input[3]);
    return !options.needs_input_gradient && size_of(options.compute) == 2 && op.stride == 2 &&
           op.kernel == 2 * op.padding + 1 && op.padding % 2 == 1 && op.input[1] % 2 == 0 &&
           op.input[2] % 2 == 0 && channels % 4 == 0 && channels <= 16;
}

ConvolutionShape convolution_shape(const ops::Convolution& op, const KernelOptions& options) {
    ConvolutionShape shape{.images = op.input[0],
                           .height = op.input[1],
                           .width = op.input[2],
                           .channels = stored_channels(op.input[3]),
                           .filters = stored_channels(op.filters),
                           .kernel = op.kernel,
                           .stride = op.stride,
                           .padding = op.padding,
                           .dtype = options.compute,
                           .tf32 = options.tf32 && options.compute == DType::f32};
    if (!reads_blocks(op, options)) return shape;
    shape.height = op.input[1] / 2 + 1;
    shape.width = op.input[2] / 2 + 1;
    shape.channels *= 4;
    shape.kernel = (op.kernel + 1) / 2;
    shape.stride = 1;
    shape.padding = (op.padding - 1) / 2;
    constexpr std::int64_t kMaxColumnChannels = 64;
    shape.is_column = shape.channels * shape.kernel <= kMaxColumnChannels;
    if (!shape.is_column) return shape;
    shape.width = op.input[2] / 2;
    shape.channels *= shape.kernel;
    return shape;
}

std::string to_string(const ConvolutionShape& shape) {
    return fmt::format("{}x{}x{}x{} filters={} kernel={}{} stride={} padding={} {}", shape.images,
                       shape.height, shape.width, shape.channels, shape.filters, shape.kernel,
                       shape.is_column ? "x1" : "", shape.stride, shape.padding,
                       shape.tf32 ? "tf32" : name_of(shape.dtype));
}

std::string_view name_of(ConvolutionPass pass) {
    static constexpr std::array<std::string_view, kConvolutionPasses> kNames{
        "forward", "forward_with_statistics", "input_gradient", "weight_gradient"};
    return kNames.at(static_cast<std::size_t>(pass));
}

}  // namespace hpcai::device::cuda
