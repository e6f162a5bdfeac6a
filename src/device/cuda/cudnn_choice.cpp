// SPDX-License-Identifier: Apache-2.0
#include "cudnn_choice.hpp"

#include <algorithm>
#include <limits>

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
        {{O::output, O::filters}, {O::image}},
        {{O::image, O::output}, {O::gradient}},
    }};
    return kAccess.at(static_cast<std::size_t>(pass));
}

/// Limits of the trials for each pass. cuDNN's heuristics list good plans first: over 66 cuDNN
/// graphs of ResNet-50 on an H200, the fastest of the first twenty plans of each together take
/// 0.05 % longer than the fastest of all. Trials of all plans take a minute more for the 66 graphs,
/// because compiling a plan can take seconds.
constexpr std::size_t kMaxTrials = 20;
constexpr double kMaxSeconds = 0.5;  // then trials end as soon as the results of two plans agree
/// A plan that is slower than the best by this factor is not compared and not chosen.
constexpr double kMaxSlowdown = 1.5;
constexpr std::size_t kMaxPlanWorkspaceBytes = std::size_t{1} << 30;

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

int index_of_plan(const ConvolutionPlans& plans, const std::string& name) {
    for (int plan = 0; plan < plans.count(); ++plan) {
        if (plans.name(plan) == name) return plan;
    }
    return -1;
}

struct TimedPlan {
    int plan = -1;
    PlanTimer::Trial trial;
};

/// The result on which most plans agree; in a tie, the first. Plans with equal
/// PlanTimer::Trial::result agree.
struct Majority {
    std::optional<int> result;
    std::ptrdiff_t plans = 0;
};

Majority find_majority(const std::vector<TimedPlan>& trials) {
    Majority best;
    for (const TimedPlan& timed : trials) {
        if (!timed.trial.result) continue;
        const auto plans = std::ranges::count_if(trials, [&](const TimedPlan& other) {
            return other.trial.result == timed.trial.result;
        });
        if (plans > best.plans) best = {timed.trial.result, plans};
    }
    return best;
}

/// The fastest plan with the result of the majority; plan -1 if no plan was compared.
TimedPlan fastest(const std::vector<TimedPlan>& trials, const Majority& majority) {
    TimedPlan best{-1, {std::numeric_limits<double>::infinity(), {}}};
    for (const TimedPlan& timed : trials) {
        const bool agrees = timed.trial.result && timed.trial.result == majority.result;
        if (agrees && timed.trial.seconds < best.trial.seconds) best = timed;
    }
    return best;
}

/// Tries plans in order, each once, except those in `excluded`, up to kMaxTrials and kMaxSeconds.
/// `run` takes a plan and a limit in seconds, above which it compares no results.
template <typename Run>
std::vector<TimedPlan> run_trials(ConvolutionPlans& plans, std::set<std::string> excluded,
                                  const Run& run) {
    const Stopwatch watch;
    std::vector<TimedPlan> trials;
    std::size_t runs = 0;
    for (int plan = 0; plan < plans.count() && runs < kMaxTrials; ++plan) {
        const Majority majority = find_majority(trials);
        const TimedPlan best = fastest(trials, majority);
        // A result that no other plan confirms may be wrong, so trials then have no time limit.
        if (majority.plans > 1 && watch.seconds() > kMaxSeconds) break;
        if (!excluded.insert(plans.name(plan)).second) continue;  // barred, or already tried
        if (!plans.finalize(plan) || plans.workspace_bytes(plan) > kMaxPlanWorkspaceBytes) continue;
        ++runs;
        // Until two plans agree, the fastest one may be wrong, so its time sets no limit.
        const double max_seconds = majority.plans > 1 ? kMaxSlowdown * best.trial.seconds
                                                      : std::numeric_limits<double>::infinity();
        if (const auto trial = run(plan, max_seconds)) trials.push_back({plan, *trial});
    }
    return trials;
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

std::span<const Operand> operands_read(ConvolutionPass pass) {
    return access_of(pass).reads;
}

std::span<const Operand> operands_written(ConvolutionPass pass) {
    return access_of(pass).writes;
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
        PlanTimer timer(shape, pass, context);
        if (timer.ready()) plan_ = time_plans(key, timer, context);
        if (plan_ >= 0) {
            const std::string fastest = name();
            // The old graph keeps the code of all timed plans on the GPU.
            plans_ = std::make_unique<ConvolutionPlans>(shape, pass, context, search);
            select(fastest);
        }
        if (plan_ >= 0) context.plans->insert(key, name());
        ++context.tuning->convolutions;
        context.tuning->seconds += watch.seconds();
    }
    if (plan_ < 0) plan_ = first_usable(*plans_, context.plans->barred(key));
    ensure(plan_ >= 0, "cuDNN cannot finalize any of its {} plans for {}", plans_->count(), key);
}

int ChosenPlan::time_plans(const std::string& key, PlanTimer& timer, const Context& context) {
    const auto run = [&](int plan, double max_seconds) {
        try {
            return timer.run(*plans_, plan, max_seconds);
        } catch (const std::exception& error) {
            context.plans->bar(key, plans_->name(plan));
            context.plans->save();
            throw Error(ExitCode::internal,
                        fmt::format("cuDNN plan {} for {} made the GPU unusable; the next run "
                                    "skips it if it has this device.plan_cache: {}",
                                    plans_->name(plan), key, error.what()));
        }
    };
    const std::vector<TimedPlan> trials = run_trials(*plans_, context.plans->barred(key), run);
    const Majority majority = find_majority(trials);
    std::vector<PlanCache::Timing> timings;
    for (const auto& [plan, trial] : trials) {
        const auto agrees =
            trial.result ? std::optional(trial.result == majority.result) : std::nullopt;
        timings.push_back(
            {plans_->name(plan), trial.seconds, plans_->workspace_bytes(plan), agrees});
    }
    context.plans->insert_timings(key, std::move(timings));
    return fastest(trials, majority).plan;
}

void ChosenPlan::select(const std::string& plan) {
    plan_ = index_of_plan(*plans_, plan);
    if (plan_ >= 0 && !plans_->finalize(plan_)) plan_ = -1;
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
    constexpr std::int64_t kColumnChannels = 64;
    shape.is_column = shape.channels * shape.kernel <= kColumnChannels;
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
        "forward",
        "forward_with_statistics",
        "input_gradient",
        "weight_gradient",
    };
    return kNames.at(static_cast<std::size_t>(pass));
}

}  // namespace hpcai::device::cuda
