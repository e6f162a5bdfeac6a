// SPDX-License-Identifier: Apache-2.0
#include "acceptance.hpp"

#include <algorithm>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>

#include "cudnn_choice.hpp"
#include "layout.hpp"
#include "plan_cache.hpp"

namespace hpcai::device::cuda {
namespace {

constexpr int kTimedRuns = 5;  // of a chain, with autotune

std::int64_t weights_of(const ops::Convolution& op) {
    return op.filters * op.kernel * op.kernel * op.input[3];
}

std::vector<std::int64_t> parameters_of(const ops::Operation& operation) {
    if (const auto* op = std::get_if<ops::Convolution>(&operation)) return {weights_of(*op)};
    const std::int64_t channels = output_shape(operation)[3];
    if (const auto* op = std::get_if<ops::PointwiseNorm>(&operation)) {
        return {weights_of(op->convolution), channels, channels};
    }
    return {channels, channels};
}

/// A kernel with operands in temporary memory.
class TimedKernel {
public:
    TimedKernel(const ops::Operation& operation, const KernelOptions& options,
                const Context& context)
        : context_(context), kernel_(build_kernel(operation, options, context)) {
        const Shape output = output_shape(operation);
        KernelTensors tensors;
        for (const Shape& input : input_shapes(operation)) {
            tensors.inputs.push_back(activation(input, options.compute));
            tensors.input_gradients.push_back(activation(input, options.compute));
        }
        tensors.output = activation(output, options.compute);
        tensors.output_gradients = {activation(output, options.compute)};
        for (const std::int64_t elements : parameters_of(operation)) {
            tensors.parameters.push_back(floats(elements));
            tensors.parameter_gradients.push_back(floats(elements));
        }
        tensors.running_mean = floats(output[3]);
        tensors.running_variance = floats(output[3]);
        const KernelMemory memory = kernel_->memory();
        tensors.saved = bytes(memory.saved_bytes);
        tensors.prepared = bytes(memory.prepared_bytes);
        tensors.workspace = bytes(memory.workspace_bytes);
        kernel_->bind(tensors);
    }

    void run(bool backward) {
        for (const ops::Pass pass : kernel_->passes()) {
            const bool is_backward =
                pass == ops::Pass::weight_gradient || pass == ops::Pass::input_gradient;
            if (pass != ops::Pass::prepare && is_backward == backward) kernel_->run(pass);
        }
    }

private:
    /// Memory filled with numbers that are small in every type, so that no result becomes infinite.
    void* bytes(std::size_t count) {
        memory_.emplace_back(std::max<std::size_t>(count, 16));
        check(cudaMemsetAsync(memory_.back().data(), 0x2f, memory_.back().bytes(), context_.stream),
              "filling a tensor");
        return memory_.back().data();
    }
    float* floats(std::int64_t elements) {
        return static_cast<float*>(bytes(static_cast<std::size_t>(elements) * sizeof(float)));
    }
    /// An activation, with memory for the per-channel sums.
    void* activation(const Shape& shape, DType dtype) {
        const Shape stored = stored_shape(shape);
        return bytes(sums_offset(storage_bytes(stored, dtype)) +
                     2 * static_cast<std::size_t>(stored[3]) * sizeof(float));
    }

    const Context& context_;
    std::unique_ptr<Kernel> kernel_;
    std::vector<DeviceBytes> memory_;
};

/// Runs both passes of a chain of kernels; returns their time in seconds.
double run_all(std::vector<TimedKernel>& kernels, cudaStream_t stream) {
    TimedEvent start, stop;
    start.record(stream);
    for (TimedKernel& kernel : kernels) kernel.run(false);
    for (std::size_t i = kernels.size(); i-- > 0;) kernels[i].run(true);
    stop.record(stream);
    return stop.seconds_since(start);
}

constexpr const char *kFusedEntry = "joined", *kSeparateEntry = "apart";  // in the plan cache

/// Fused kernels are tested with multiples of 8 channels only.
bool fills_vectors(std::int64_t channels) {
    return channels % 8 == 0;
}

bool spans_batch(const ops::BatchNorm& op) {
    if (op.frozen) return false;
    return op.statistics_samples == 0 || op.statistics_samples == op.input[0];
}

struct Decision {
    bool fused = false;
    bool is_final = true;  // false if a trial failed: later runs decide again
};

/// Whether `fused` runs and, with autotune, is faster than the equivalent `separate`.
Decision compare(const Chain& fused, const Chain& separate, const KernelOptions& options,
                 const Context& context) {
    // The bits of a deterministic run must not depend on the memory that is free for a trial.
    if (!context.has_device() || (!context.autotune && context.deterministic)) return {true};
    const auto fused_seconds = seconds_of(fused, options, context);
    if (!context.autotune) return {fused_seconds.has_value()};
    const auto separate_seconds = seconds_of(separate, options, context);
    return {fused_seconds && (!separate_seconds || *fused_seconds < *separate_seconds),
            fused_seconds && separate_seconds};
}

Chain with_norm(const ops::Convolution& op) {
    return {op, ops::BatchNorm{.input = output_shape(op), .relu = true, .from_sums = op.sums}};
}

/// Whether the engine has a kernel that may be faster than separate operations. In f32, or with few
/// output channels, the Gram matrix x^T x of the input costs more than it saves.
bool may_be_faster(const ops::PointwiseNorm& op, const KernelOptions& options) {
    const ops::Convolution& convolution = op.convolution;
    const std::int64_t inputs = convolution.input[3];
    return size_of(options.compute) == 2 && options.needs_input_gradient &&
           convolution.padding == 0 && op.norm.add == op.norm.relu && spans_batch(op.norm) &&
           inputs % 8 == 0 && convolution.filters % 128 == 0 && convolution.filters >= 2 * inputs;
}

}  // namespace

std::optional<double> seconds_of(const Chain& chain, const KernelOptions& options,
                                 const Context& context) {
    try {
        std::vector<TimedKernel> kernels;
        for (const ops::Operation& operation : chain) {
            kernels.emplace_back(operation, options, context);
        }
        const double first = run_all(kernels, context.stream);  // may load code
        if (!context.autotune) return first;
        std::array<double, kTimedRuns> seconds{};
        for (double& repeat : seconds) repeat = run_all(kernels, context.stream);
        std::nth_element(seconds.begin(), seconds.begin() + kTimedRuns / 2, seconds.end());
        return seconds[kTimedRuns / 2];
    } catch (const Error&) {
        rethrow_fault();
        return std::nullopt;
    }
}

template <typename IsPossible, typename Compare>
bool Acceptance::decide(const std::string& key, const IsPossible& is_possible,
                        const Compare& compare) {
    const auto [known, is_new] = known_.try_emplace(key);
    if (!is_new) return known->second;
    const std::string stored = is_timed() ? context_.plans->find(key) : "";
    if (stored == kSeparateEntry) return false;
    const double seconds_before = is_timed() ? context_.tuning->seconds : 0;
    const Stopwatch watch;
    const bool possible = is_possible();
    if (possible && stored == kFusedEntry) return known->second = true;
    const Decision decision = possible ? compare() : Decision{};
    known->second = decision.fused;
    // Replaces the time that compare() added for plans, because `watch` includes it.
    if (is_timed()) context_.tuning->seconds = seconds_before + watch.seconds();
    if (is_timed() && decision.is_final)
        context_.plans->insert(key, decision.fused ? kFusedEntry : kSeparateEntry);
    return known->second;
}

bool Acceptance::operator()(const ops::Operation& operation, const KernelOptions& options) {
    if (options.mode != Mode::training) return false;
    if (const auto* op = std::get_if<ops::Convolution>(&operation)) {
        return op->sums && fills_vectors(op->filters) && accepts_sums(*op, options);
    }
    if (const auto* op = std::get_if<ops::BatchNorm>(&operation)) {
        return op->from_sums && spans_batch(*op) && fills_vectors(op->input[3]);
    }
    if (const auto* op = std::get_if<ops::NormPool>(&operation)) {
        return op->pool.kernel == 3 && op->pool.stride == 2 && op->pool.padding == 1 &&
               spans_batch(op->norm) && fills_vectors(op->norm.input[3]);
    }
    if (const auto* op = std::get_if<ops::PointwiseNorm>(&operation)) {
        return may_be_faster(*op, options) && accepts_pointwise(*op, options);
    }
    const auto* op = std::get_if<ops::DualNorm>(&operation);
    return op != nullptr && spans_batch(op->outer) && spans_batch(op->inner) &&
           fills_vectors(op->outer.input[3]);
}

bool Acceptance::accepts_sums(const ops::Convolution& op, const KernelOptions& options) {
    const ConvolutionShape shape = convolution_shape(op, options);
    const auto is_possible = [&] {
        // A plan may have been barred after the entry was stored (PlanCache::barred).
        return has_plan(shape, ConvolutionPass::forward_with_statistics, context_);
    };
    ops::Convolution plain = op;
    plain.sums = false;
    return decide("joined sums " + to_string(shape), is_possible,
                  [&] { return compare(with_norm(op), with_norm(plain), options, context_); });
}

bool Acceptance::accepts_pointwise(const ops::PointwiseNorm& op, const KernelOptions& options) {
    // On an H200, the Gram matrix of 512 channels costs more than it saves.
    constexpr std::int64_t kMaxChannels = 256;
    const ConvolutionShape shape = convolution_shape(op.convolution, options);
    ops::Convolution convolution = op.convolution;
    ops::BatchNorm norm = op.norm;
    convolution.sums = true;
    norm.from_sums = convolution.sums = (*this)(convolution, options);  // with sums if accepted
    return decide(
        "pointwise norm " + to_string(shape) + (norm.add ? " + residual" : ""),
        [&] { return is_timed() || shape.channels <= kMaxChannels; },
        [&] {
            return compare({op}, {convolution, norm}, options, context_);
        });
}

}  // namespace hpcai::device::cuda
