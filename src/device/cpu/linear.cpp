// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "context.hpp"

namespace hpcai::device::cpu {
namespace {

using Forward = dnnl::inner_product_forward;
using BackwardData = dnnl::inner_product_backward_data;
using BackwardWeights = dnnl::inner_product_backward_weights;

/// Logits are fp32 whatever the compute type; their gradient has the compute type.
class LinearKernel final : public Kernel {
public:
    LinearKernel(const ops::Linear& op, const KernelOptions& options, const Context& context)
        : context_(context), options_(options) {
        using tag = dnnl::memory::format_tag;
        const auto compute = dnnl_type(options.compute);
        const dnnl::memory::dims inputs{op.input[0], op.input[1]},
            filters{op.features, op.input[1]}, outputs{op.input[0], op.features};
        source_ = dnnl::memory::desc(inputs, compute, tag::nc);
        target_ = dnnl::memory::desc(outputs, dnnl::memory::data_type::f32, tag::nc);
        target_gradient_ = dnnl::memory::desc(outputs, compute, tag::nc);
        any_weights_ = dnnl::memory::desc(filters, compute, tag::any);
        master_ = dnnl::memory::desc(filters, dnnl::memory::data_type::f32, tag::nc);
        bias_ = dnnl::memory::desc({op.features}, dnnl::memory::data_type::f32, tag::x);
        plan_forward();
        if (options.mode == Mode::training) plan_backward();
    }

    KernelMemory memory() const override {
        return {0, forward_bytes_ + backward_bytes_,
                std::max({forward_.scratchpad_bytes(),
                          gradient_bytes_ + weight_gradient_.scratchpad_bytes(),
                          input_gradient_.scratchpad_bytes()})};
    }
    bool backward_reads_inputs() const override { return true; }
    std::vector<ops::Pass> passes() const override {
        if (options_.mode == Mode::inference) return {ops::Pass::prepare, ops::Pass::forward};
        return {ops::Pass::prepare, ops::Pass::forward, ops::Pass::weight_gradient,
                ops::Pass::input_gradient};
    }

    void bind(const KernelTensors& tensors) override {
        auto* prepared = static_cast<std::byte*>(tensors.prepared);
        auto* workspace = static_cast<std::byte*>(tensors.workspace);
        const auto weights = [&](std::size_t bytes, std::size_t offset) -> void* {
            return bytes > 0 ? static_cast<void*>(prepared + offset) : tensors.parameters[0];
        };
        void* forward_weights = weights(forward_bytes_, 0);
        to_forward_.set(tensors.parameters[0], forward_weights);
        forward_.set(DNNL_ARG_SRC, tensors.inputs[0]);
        forward_.set(DNNL_ARG_WEIGHTS, forward_weights);
        forward_.set(DNNL_ARG_BIAS, tensors.parameters[1]);
        forward_.set(DNNL_ARG_DST, tensors.output);
        forward_.set_scratchpad(workspace);
        if (options_.mode == Mode::inference) return;
        void* backward_weights = weights(backward_bytes_, forward_bytes_);
        to_backward_.set(tensors.parameters[0], backward_weights);
        input_gradient_.set(DNNL_ARG_DIFF_DST, tensors.output_gradients[0]);
        input_gradient_.set(DNNL_ARG_WEIGHTS, backward_weights);
        input_gradient_.set(DNNL_ARG_DIFF_SRC, tensors.input_gradients[0]);
        input_gradient_.set_scratchpad(workspace);
        void* gradient =
            gradient_bytes_ > 0 ? static_cast<void*>(workspace) : tensors.parameter_gradients[0];
        weight_gradient_.set(DNNL_ARG_SRC, tensors.inputs[0]);
        weight_gradient_.set(DNNL_ARG_DIFF_DST, tensors.output_gradients[0]);
        weight_gradient_.set(DNNL_ARG_DIFF_WEIGHTS, gradient);
        weight_gradient_.set(DNNL_ARG_DIFF_BIAS, tensors.parameter_gradients[1]);
        weight_gradient_.set_scratchpad(workspace + gradient_bytes_);
        from_gradient_.set(gradient, tensors.parameter_gradients[0]);
    }

    void run(ops::Pass pass) override {
        switch (pass) {
            case ops::Pass::prepare:
                to_forward_.run(context_);
                to_backward_.run(context_);
                break;
            case ops::Pass::forward:
                forward_.run(context_);
                break;
            case ops::Pass::weight_gradient:
                weight_gradient_.run(context_);
                from_gradient_.run(context_);
                break;
            case ops::Pass::input_gradient:
                input_gradient_.run(context_);
                break;
        }
    }

private:
    /// Bytes of a working copy in layout `desc`; none when the master itself serves.
    std::size_t copy_bytes(const dnnl::memory::desc& desc) const {
        return desc == master_ ? 0 : (desc.get_size() + 63) / 64 * 64;
    }

    void plan_forward() {
        const auto kind = options_.mode == Mode::training ? dnnl::prop_kind::forward_training
                                                          : dnnl::prop_kind::forward_inference;
        const Forward::primitive_desc plan({kind, source_, any_weights_, bias_, target_},
                                           caller_scratchpad(), context_.engine);
        forward_ = Primitive(Forward(plan), plan.scratchpad_desc(), context_);
        forward_.add(DNNL_ARG_SRC, source_, context_);
        forward_.add(DNNL_ARG_WEIGHTS, plan.weights_desc(), context_);
        forward_.add(DNNL_ARG_BIAS, bias_, context_);
        forward_.add(DNNL_ARG_DST, target_, context_);
        forward_bytes_ = copy_bytes(plan.weights_desc());
        to_forward_ = Reorder(master_, plan.weights_desc(), context_);
    }

    void plan_backward() {
        const Forward::primitive_desc hint(
            {dnnl::prop_kind::forward_training, source_, any_weights_, target_gradient_},
            context_.engine);
        const BackwardData::primitive_desc data({source_, any_weights_, target_gradient_},
                                                caller_scratchpad(), context_.engine, hint);
        input_gradient_ = Primitive(BackwardData(data), data.scratchpad_desc(), context_);
        input_gradient_.add(DNNL_ARG_DIFF_DST, target_gradient_, context_);
        input_gradient_.add(DNNL_ARG_WEIGHTS, data.weights_desc(), context_);
        input_gradient_.add(DNNL_ARG_DIFF_SRC, source_, context_);
        backward_bytes_ = copy_bytes(data.weights_desc());
        to_backward_ = Reorder(master_, data.weights_desc(), context_);

        const dnnl::memory::desc any_gradient(master_.dims(), dnnl::memory::data_type::f32,
                                              dnnl::memory::format_tag::any);
        const BackwardWeights::primitive_desc weights(
            {source_, any_gradient, bias_, target_gradient_}, caller_scratchpad(), context_.engine,
            hint);
        weight_gradient_ = Primitive(BackwardWeights(weights), weights.scratchpad_desc(), context_);
        weight_gradient_.add(DNNL_ARG_SRC, source_, context_);
        weight_gradient_.add(DNNL_ARG_DIFF_DST, target_gradient_, context_);
        weight_gradient_.add(DNNL_ARG_DIFF_WEIGHTS, weights.diff_weights_desc(), context_);
        weight_gradient_.add(DNNL_ARG_DIFF_BIAS, bias_, context_);
        gradient_bytes_ = copy_bytes(weights.diff_weights_desc());
        from_gradient_ = Reorder(weights.diff_weights_desc(), master_, context_);
    }

    const Context& context_;
    KernelOptions options_;
    dnnl::memory::desc source_, target_, target_gradient_, any_weights_, master_, bias_;
    Primitive forward_, weight_gradient_, input_gradient_;
    Reorder to_forward_, to_backward_, from_gradient_;
    std::size_t forward_bytes_ = 0, backward_bytes_ = 0, gradient_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> build_linear(const ops::Linear& op, const KernelOptions& options,
                                     const Context& context) {
    return std::make_unique<LinearKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
