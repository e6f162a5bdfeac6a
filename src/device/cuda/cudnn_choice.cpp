// SPDX-License-Identifier: Apache-2.0
#include "cudnn_choice.hpp"

#include <chrono>
#include <set>
#include <vector>

#include <fmt/core.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>

#include "plan_cache.hpp"

namespace hpcai::device::cuda {
namespace {

using O = Operand;

struct Access {
    std::vector<Operand> reads;
    std::vector<Operand> writes;
};

const Access& access_of(ConvolutionPass pass) {
    static const std::array<Access, kConvolutionPasses> kAccess{{
        {{O::image, O::filters}, {O::output}},
        {{O::image, O::filters}, {O::output, O::sum, O::square_sum}},
        {{O::image, O::filters, O::scale, O::shift}, {O::output, O::sum, O::square_sum}},
        {{O::output, O::filters}, {O::image}},
        {{O::output, O::filters, O::norm_input, O::mean, O::inverse_deviation, O::scale, O::shift},
         {O::image, O::gamma_gradient, O::beta_gradient, O::factor_dy, O::factor_x, O::constant}},
        {{O::image, O::output}, {O::gradient}},
        {{O::image, O::output, O::scale, O::shift}, {O::gradient}},
    }};
    return kAccess.at(static_cast<std::size_t>(pass));
}

/// Plans beyond these limits are not tried: heuristics list the good ones first, compiling a plan
/// can take seconds, and a ResNet-50 has about 70 different convolutions and gradients.
constexpr std::size_t kMaxTimed = 12;
constexpr double kMaxSeconds = 0.5;
constexpr std::size_t kMaxPlanWorkspaceBytes = std::size_t{1} << 30;

int find_plan(const ConvolutionPlans& plans, const std::string& name) {
    for (int plan = 0; plan < plans.count(); ++plan) {
        if (plans.name(plan) == name) return plan;
    }
    return -1;
}

/// The fastest plan, or -1 when none could be timed.
int fastest(ConvolutionPlans& plans, PlanTimer& timer) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::duration<double>(kMaxSeconds);
    int best = -1;
    double least = 0;
    std::set<std::string> tried;  // several heuristics name the same plan
    std::size_t timed = 0;        // many of the first may be excluded, such as those that drop bits
    for (int plan = 0; plan < plans.count() && timed < kMaxTimed; ++plan) {
        if (best >= 0 && Clock::now() > deadline) break;
        if (!tried.insert(plans.name(plan)).second) continue;
        if (!plans.finalize(plan) || plans.workspace_bytes(plan) > kMaxPlanWorkspaceBytes) continue;
        ++timed;
        const auto seconds = timer.seconds(plans, plan);
        if (!seconds) continue;
        if (best < 0 || *seconds < least) {
            best = plan;
            least = *seconds;
        }
    }
    return best;
}

}  // namespace

int first_good(ConvolutionPlans& plans) {
    int best = -1;
    for (int plan = 0; plan < plans.count(); ++plan) {
        if (!plans.finalize(plan)) continue;
        if (plans.workspace_bytes(plan) <= kMaxPlanWorkspaceBytes) return plan;
        if (best < 0 || plans.workspace_bytes(plan) < plans.workspace_bytes(best)) best = plan;
    }
    return best;
}

std::span<const Operand> read_by(ConvolutionPass pass) {
    return access_of(pass).reads;
}

std::span<const Operand> written_by(ConvolutionPass pass) {
    return access_of(pass).writes;
}

DType type_of(Operand operand, ConvolutionPass pass, DType shape_type) {
    switch (operand) {
        case O::image:
        case O::filters:
        case O::output:
        case O::gradient:
        case O::norm_input:
            return shape_type;
        case O::scale:
        case O::shift:
            return pass == ConvolutionPass::input_gradient_with_norm ? DType::f32 : shape_type;
        default:
            return DType::f32;
    }
}

std::size_t bytes_of(Operand operand, const ConvolutionShape& shape) {
    const auto bytes = [](std::int64_t elements, DType dtype) {
        return static_cast<std::size_t>(elements) * size_of(dtype);
    };
    switch (operand) {
        case O::image:
        case O::norm_input:
            return bytes(shape.images * shape.height * shape.width * shape.channels, shape.dtype);
        case O::filters:
        case O::gradient:
            return bytes(shape.filters * shape.kernel * shape.kernel_width() * shape.channels,
                         shape.dtype);
        case O::output:
            return bytes(
                shape.images * shape.output_height() * shape.output_width() * shape.filters,
                shape.dtype);
        case O::sum:
        case O::square_sum:
            return bytes(shape.filters, DType::f32);
        default:
            return bytes(shape.channels, DType::f32);  // or fewer, for half types
    }
}

std::string plan_key(const ConvolutionShape& shape, ConvolutionPass pass) {
    return fmt::format("{} {}", name_of(pass), to_string(shape));
}

bool has_plan(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context) {
    if (context.plans != nullptr && !context.plans->find(plan_key(shape, pass)).empty()) {
        return true;
    }
    try {
        ConvolutionPlans plans(shape, pass, context, ConvolutionPlans::Search::quick);
        return first_good(plans) >= 0;
    } catch (const Error&) {
        return false;  // cuDNN does not support this graph
    }
}

ChosenPlan::ChosenPlan(const ConvolutionShape& shape, ConvolutionPass pass,
                       const Context& context) {
    using Search = ConvolutionPlans::Search;
    const std::string key = plan_key(shape, pass);
    const std::string known = context.plans == nullptr ? "" : context.plans->find(key);
    const bool time_them = context.has_device() && context.autotune && known.empty();
    const Search search = time_them || !known.empty() ? Search::all : Search::quick;
    plans_ = std::make_unique<ConvolutionPlans>(shape, pass, context, search);
    if (!known.empty()) {
        plan_ = find_plan(*plans_, known);
        if (plan_ >= 0 && !plans_->finalize(plan_)) plan_ = -1;
    } else if (time_them) {
        const Stopwatch watch;
        PlanTimer timer(shape, pass, context);
        if (timer.ready()) plan_ = fastest(*plans_, timer);
        if (plan_ >= 0)
            keep_only(name(), std::make_unique<ConvolutionPlans>(shape, pass, context, search));
        if (plan_ >= 0 && context.plans != nullptr) context.plans->insert(key, name());
        ++context.tuning->convolutions;
        context.tuning->seconds += watch.seconds();
    }
    if (plan_ < 0) plan_ = first_good(*plans_);
    ensure(plan_ >= 0, "cuDNN finalizes none of its {} plans for {}", plans_->count(), key);
}

/// Timed plans keep code on the GPU until their graph is destroyed.
void ChosenPlan::keep_only(const std::string& plan, std::unique_ptr<ConvolutionPlans> fresh) {
    plans_ = std::move(fresh);
    plan_ = find_plan(*plans_, plan);
    if (plan_ >= 0 && !plans_->finalize(plan_)) plan_ = -1;
}

std::size_t ChosenPlan::workspace_bytes() const {
    return plan_ < 0 ? 0 : plans_->workspace_bytes(plan_);
}

std::string ChosenPlan::name() const {
    return plan_ < 0 ? "" : plans_->name(plan_);
}

void ChosenPlan::run(const Operands& operands, void* workspace) const {
    plans_->execute(plan_, operands, workspace);
}

}  // namespace hpcai::device::cuda
