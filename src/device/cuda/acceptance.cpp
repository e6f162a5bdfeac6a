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

constexpr const char* kJoined = "joined";

/// The fused kernels were tested with multiples of 8 channels only, as in all fast networks.
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
                        std::initializer_list<P> passes, const std::function<Answer()>& answer) {
    const std::string question = kind + " " + to_string(shape);
    const auto [known, is_new] = known_.try_emplace(question);
    if (!is_new) return known->second;
    const std::string key = "joined " + question;
    const bool is_timed = context_.has_device() && context_.autotune && context_.plans != nullptr;
    const std::string remembered = is_timed ? context_.plans->find(key) : "";
    if (remembered == "apart") return false;
    const double before = is_timed ? context_.tuning->seconds : 0;
    const Stopwatch watch;
    // A pass may have lost its plans, if they were barred after "joined" was remembered.
    const bool exists =
        std::ranges::all_of(passes, [&](P pass) { return has_plan(shape, pass, context_); });
    if (exists && remembered == kJoined) return known->second = true;
    const Answer found = exists ? answer() : Answer{};
    known->second = found.joined;
    // answer() may have added the time of plans, which `watch` includes.
    if (is_timed) context_.tuning->seconds = before + watch.seconds();
    if (is_timed && found.lasts) context_.plans->insert(key, found.joined ? kJoined : "apart");
    return known->second;
}

Acceptance::Answer Acceptance::is_faster(const std::vector<ops::Operation>& joined,
                                         const std::vector<ops::Operation>& apart,
                                         const KernelOptions& options) {
    if (!context_.has_device()) return {true};
    // The bits of a deterministic run must not depend on what memory is free for the trial.
    if (!context_.autotune) return {context_.deterministic || runs(joined, options, context_)};
    const auto together = seconds_of(joined, options, context_);
    const auto separate = seconds_of(apart, options, context_);
    return {together && (!separate || *together < *separate), together && separate};
}

bool Acceptance::accepts(const ops::Convolution& op, const KernelOptions& options) {
    if (!op.sums || !fills_vectors(op.filters)) return false;
    const ConvolutionShape shape = convolution_shape(op, options);
    return decide("sums", shape, {P::forward_with_statistics}, [&] {
        ops::Convolution apart = op;
        apart.sums = false;
        const ops::BatchNorm norm{.input = output_shape(op), .relu = true};
        ops::BatchNorm from_sums = norm;
        from_sums.from_sums = true;
        return is_faster({op, from_sums}, {apart, norm}, options);
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
        ops::Convolution apart = convolution;
        apart.sums = sums_anyway;
        return is_faster({op}, {op.norm, apart}, options);
    });
}

bool Acceptance::accepts(const ops::DualNorm& op, const KernelOptions&) {
    return spans_batch(op.outer) && spans_batch(op.inner) && fills_vectors(op.outer.input[3]);
}

}  // namespace hpcai::device::cuda
