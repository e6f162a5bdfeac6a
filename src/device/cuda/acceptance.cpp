// SPDX-License-Identifier: Apache-2.0
#include "acceptance.hpp"

#include <algorithm>

#include <hpcai/base/clock.hpp>

#include "cudnn_choice.hpp"
#include "kernel_timing.hpp"
#include "plan_cache.hpp"

namespace hpcai::device::cuda {
namespace {

using P = ConvolutionPass;

constexpr const char *kFusedEntry = "joined", *kSeparateEntry = "apart";  // in the plan cache

/// Fused kernels are tested with multiples of 8 channels only, as in all fast networks.
bool fills_vectors(std::int64_t channels) {
    return channels % 8 == 0;
}

bool spans_batch(const ops::BatchNorm& op) {
    if (op.frozen) return false;
    return op.statistics_samples == 0 || op.statistics_samples == op.input[0];
}

}  // namespace

bool Acceptance::operator()(const ops::Operation& operation, const KernelOptions& options) {
    if (options.mode != Mode::training) return false;
    return std::visit([&](const auto& op) { return accepts(op, options); }, operation);
}

bool Acceptance::decide(const std::string& kind, const ConvolutionShape& shape,
                        std::initializer_list<P> passes, const std::function<Decision()>& compare) {
    const std::string name = kind + " " + to_string(shape);
    const auto [known, is_new] = known_.try_emplace(name);
    if (!is_new) return known->second;
    const std::string key = "joined " + name;
    const bool is_timed = context_.has_device() && context_.autotune && context_.plans != nullptr;
    const std::string stored = is_timed ? context_.plans->find(key) : "";
    if (stored == kSeparateEntry) return false;
    const double before = is_timed ? context_.tuning->seconds : 0;
    const Stopwatch watch;
    // The plans of a pass may have been barred after the entry was stored.
    const bool has_plans =
        std::ranges::all_of(passes, [&](P pass) { return has_plan(shape, pass, context_); });
    if (has_plans && stored == kFusedEntry) return known->second = true;
    const Decision decision = has_plans ? compare() : Decision{};
    known->second = decision.fused;
    // compare() may have added the time of plans, which `watch` includes.
    if (is_timed) context_.tuning->seconds = before + watch.seconds();
    if (is_timed && decision.is_final)
        context_.plans->insert(key, decision.fused ? kFusedEntry : kSeparateEntry);
    return known->second;
}

Acceptance::Decision Acceptance::is_faster(const std::vector<ops::Operation>& fused,
                                           const std::vector<ops::Operation>& separate,
                                           const KernelOptions& options) {
    if (!context_.has_device()) return {true};
    // The bits of a deterministic run must not depend on the memory that is free for a trial.
    if (!context_.autotune) return {context_.deterministic || runs(fused, options, context_)};
    const auto fused_seconds = seconds_of(fused, options, context_);
    const auto separate_seconds = seconds_of(separate, options, context_);
    return {fused_seconds && (!separate_seconds || *fused_seconds < *separate_seconds),
            fused_seconds && separate_seconds};
}

bool Acceptance::accepts(const ops::Convolution& op, const KernelOptions& options) {
    if (!op.sums || !fills_vectors(op.filters)) return false;
    const ConvolutionShape shape = convolution_shape(op, options);
    return decide("sums", shape, {P::forward_with_statistics}, [&] {
        ops::Convolution separate = op;
        separate.sums = false;
        const ops::BatchNorm norm{.input = output_shape(op), .relu = true};
        ops::BatchNorm from_sums = norm;
        from_sums.from_sums = true;
        return is_faster({op, from_sums}, {separate, norm}, options);
    });
}

bool Acceptance::accepts(const ops::BatchNorm& op, const KernelOptions&) {
    return op.from_sums && spans_batch(op) && fills_vectors(op.input[3]);
}

bool Acceptance::accepts(const ops::NormConvolution& op, const KernelOptions& options) {
    const ops::Convolution& convolution = op.convolution;
    if (!convolution.sums || !options.needs_input_gradient || !spans_batch(op.norm)) return false;
    if (!fills_vectors(convolution.input[3]) || !fills_vectors(convolution.filters)) return false;
    const ConvolutionShape shape = convolution_shape(convolution, options);
    const bool sums_anyway = accepts(convolution, options);
    const auto passes = {P::normalized_forward_with_statistics, P::normalized_weight_gradient,
                         P::input_gradient_with_norm};
    return decide("norm", shape, passes, [&] {
        ops::Convolution separate = convolution;
        separate.sums = sums_anyway;
        return is_faster({op}, {op.norm, separate}, options);
    });
}

bool Acceptance::accepts(const ops::DualNorm& op, const KernelOptions&) {
    return spans_batch(op.outer) && spans_batch(op.inner) && fills_vectors(op.outer.input[3]);
}

}  // namespace hpcai::device::cuda
