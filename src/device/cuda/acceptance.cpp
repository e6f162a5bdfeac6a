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

constexpr int kRepeats = 5;

/// The tensors of an operation in addition to the memory that Kernel::memory() reports.
struct Requirements {
    std::vector<Shape> images;
    std::vector<std::int64_t> parameters;  // elements
};

Requirements& operator+=(Requirements& all, const Requirements& more) {
    all.images.insert(all.images.end(), more.images.begin(), more.images.end());
    all.parameters.insert(all.parameters.end(), more.parameters.begin(), more.parameters.end());
    return all;
}

struct RequirementsOf {
    Requirements operator()(const ops::Convolution& op) const {
        return {{op.input}, {op.filters * op.kernel * op.kernel * op.input[3]}};
    }
    Requirements operator()(const ops::BatchNorm& op) const {
        return {std::vector<Shape>(op.add ? 2 : 1, op.input), {op.input[3], op.input[3]}};
    }
    Requirements operator()(const ops::NormConvolution& op) const {
        Requirements all = (*this)(op.norm);
        all.parameters.push_back((*this)(op.convolution).parameters[0]);
        return all;
    }
    Requirements operator()(const ops::DualNorm& op) const {
        Requirements all{{op.outer.input}, {op.outer.input[3], op.outer.input[3]}};
        return all += (*this)(op.inner);
    }
    template <typename Other>
    Requirements operator()(const Other&) const {
        throw Error(ExitCode::internal, "only convolutions and norms can be timed");
    }
};

class TimedKernel {
public:
    TimedKernel(const ops::Operation& operation, const KernelOptions& options,
                const Context& context)
        : context_(context), kernel_(build_kernel(operation, options, context)) {
        const Requirements required = std::visit(RequirementsOf{}, operation);
        KernelTensors tensors;
        for (const Shape& image : required.images) {
            tensors.inputs.push_back(activation(image, options.compute));
            tensors.input_gradients.push_back(activation(image, options.compute));
        }
        const Shape output = output_shape(operation);
        tensors.output = activation(output, options.compute);
        tensors.output_gradients = {activation(output, options.compute)};
        for (const std::int64_t elements : required.parameters) {
            tensors.parameters.push_back(floats(elements));
            tensors.parameter_gradients.push_back(floats(elements));
        }
        for (float** running : {&tensors.running_mean, &tensors.running_variance,
                                &tensors.inner_running_mean, &tensors.inner_running_variance}) {
            *running = floats(required.images[0][3]);
        }
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

double seconds_of(std::vector<TimedKernel>& kernels, cudaStream_t stream) {
    TimedEvent start, stop;
    start.record(stream);
    for (TimedKernel& kernel : kernels) kernel.run(false);
    for (std::size_t i = kernels.size(); i-- > 0;) kernels[i].run(true);
    stop.record(stream);
    return stop.seconds_since(start);
}

std::vector<TimedKernel> kernels_of(const std::vector<ops::Operation>& operations,
                                    const KernelOptions& options, const Context& context) {
    std::vector<TimedKernel> kernels;
    for (const ops::Operation& operation : operations) {
        kernels.emplace_back(operation, options, context);
    }
    return kernels;
}

using P = ConvolutionPass;

constexpr const char *kFusedEntry = "joined", *kSeparateEntry = "apart";  // in the plan cache

/// Fused kernels are tested with multiples of 8 channels only.
bool fills_vectors(std::int64_t channels) {
    return channels % 8 == 0;
}

bool spans_batch(const ops::BatchNorm& op) {
    if (op.frozen) return false;
    return op.statistics_samples == 0 || op.statistics_samples == op.input[0];
}

}  // namespace

bool can_run(const std::vector<ops::Operation>& operations, const KernelOptions& options,
             const Context& context) {
    try {
        std::vector<TimedKernel> kernels = kernels_of(operations, options, context);
        seconds_of(kernels, context.stream);
        return true;
    } catch (const Error&) {
        rethrow_fault();
        return false;
    }
}

std::optional<double> seconds_of(const std::vector<ops::Operation>& operations,
                                 const KernelOptions& options, const Context& context) {
    try {
        std::vector<TimedKernel> kernels = kernels_of(operations, options, context);
        seconds_of(kernels, context.stream);
        std::array<double, kRepeats> seconds{};
        for (double& repeat : seconds) repeat = seconds_of(kernels, context.stream);
        std::nth_element(seconds.begin(), seconds.begin() + kRepeats / 2, seconds.end());
        return seconds[kRepeats / 2];
    } catch (const Error&) {
        rethrow_fault();
        return std::nullopt;
    }
}

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
    // A plan may have been barred after the entry was stored (PlanCache::barred).
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
    if (!context_.autotune) return {context_.deterministic || can_run(fused, options, context_)};
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

bool Acceptance::accepts(const ops::NormPool& op, const KernelOptions&) {
    const bool has_kernel = op.pool.kernel == 3 && op.pool.stride == 2 && op.pool.padding == 1;
    return has_kernel && spans_batch(op.norm) && fills_vectors(op.norm.input[3]);
}

}  // namespace hpcai::device::cuda
