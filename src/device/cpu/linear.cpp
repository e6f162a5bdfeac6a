// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "working_copy.hpp"

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
        return {0, forward_weights_.bytes() + backward_weights_.bytes(),
                std::max({forward_.scratchpad_bytes(),
                          gradient_.bytes() + weight_gradient_.scratchpad_bytes(),
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
        forward_.set(DNNL_ARG_SRC, tensors.inputs[0]);
        forward_.set(DNNL_ARG_WEIGHTS, forward_weights_.bind(tensors.parameters[0], prepared));
        forward_.set(DNNL_ARG_BIAS, tensors.parameters[1]);
        forward_.set(DNNL_ARG_DST, tensors.output);
        forward_.set_scratchpad(workspace);
        if (options_.mode == Mode::inference) return;
        input_gradient_.set(DNNL_ARG_DIFF_DST, tensors.output_gradients[0]);
        input_gradient_.set(
            DNNL_ARG_WEIGHTS,
            backward_weights_.bind(tensors.parameters[0], prepared + forward_weights_.bytes()));
        input_gradient_.set(DNNL_ARG_DIFF_SRC, tensors.input_gradients[0]);
        input_gradient_.set_scratchpad(workspace);
        weight_gradient_.set(DNNL_ARG_SRC, tensors.inputs[0]);
        weight_gradient_.set(DNNL_ARG_DIFF_DST, tensors.output_gradients[0]);
        weight_gradient_.set(DNNL_ARG_DIFF_WEIGHTS,
                             gradient_.bind(workspace, tensors.parameter_gradients[0]));
        weight_gradient_.set(DNNL_ARG_DIFF_BIAS, tensors.parameter_gradients[1]);
        weight_gradient_.set_scratchpad(workspace + gradient_.bytes());
    }

    void run(ops::Pass pass) override {
        switch (pass) {
            case ops::Pass::prepare:
                forward_weights_.refresh(context_);
                backward_weights_.refresh(context_);
                break;
            case ops::Pass::forward:
                forward_.run(context_);
                break;
            case ops::Pass::weight_gradient:
                weight_gradient_.run(context_);
                gradient_.run(context_);
                break;
            case ops::Pass::input_gradient:
                input_gradient_.run(context_);
                break;
        }
    }

private:
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
        forward_weights_ = WorkingCopy(master_, plan.weights_desc(), context_);
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
        backward_weights_ = WorkingCopy(master_, data.weights_desc(), context_);

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
        gradient_ = GradientCopy(weights.diff_weights_desc(), master_, context_);
    }

    const Context& context_;
    KernelOptions options_;
    dnnl::memory::desc source_, target_, target_gradient_, any_weights_, master_, bias_;
    Primitive forward_, weight_gradient_, input_gradient_;
    WorkingCopy forward_weights_, backward_weights_;
    GradientCopy gradient_;
};

}  // namespace

std::unique_ptr<Kernel> build_linear(const ops::Linear& op, const KernelOptions& options,
                                     const Context& context) {
    return std::make_unique<LinearKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
