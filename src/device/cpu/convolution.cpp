// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "staged_primitive.hpp"
#include "working_copy.hpp"

namespace hpcai::device::cpu {
namespace {

using Flow = StagedPrimitive::Flow;

/// The operands of a convolution: values as the engine lays them out and as oneDNN is asked to
/// take them, which is its choice where it has nothing fast for the engine's layout; filters in
/// oneDNN's choice.
struct Operands {
    dnnl::memory::desc source, target, wanted_source, wanted_target, filters, filter_gradients;
    dnnl::memory::dims strides, padding;

    Operands(const ops::Convolution& op, const KernelOptions& options, const Layouts& layouts)
        : source(value_desc(layouts, op.input, options.compute)),
          target(value_desc(layouts, output_shape(op), options.compute)),
          wanted_source(source),
          wanted_target(target),
          strides{op.stride, op.stride},
          padding{op.padding, op.padding} {
        const dnnl::memory::dims dims{op.filters, op.input[3], op.kernel, op.kernel};
        filters = any_layout(dims, dnnl_type(options.compute));
        filter_gradients = any_layout(dims, dnnl::memory::data_type::f32);
        const bool gradient = options.mode == Mode::training && options.needs_input_gradient;
        if (suits_convolutions(layouts, op.input, output_shape(op), gradient)) return;
        wanted_source = any_layout(source.dims(), source.data_type());
        wanted_target = any_layout(target.dims(), target.data_type());
    }

    static dnnl::memory::desc any_layout(const dnnl::memory::dims& dims,
                                         dnnl::memory::data_type type) {
        return {dims, type, dnnl::memory::format_tag::any};
    }
};

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

class ConvolutionKernel final : public Kernel {
public:
    ConvolutionKernel(const ops::Convolution& op, const KernelOptions& options,
                      const Context& context)
        : context_(context), options_(options) {
        const Operands operands(op, options, context.layouts);
        // Canonical filters are (K, R, S, C); oneDNN names the axes (K, C, R, S).
        master_ = dnnl::memory::desc({op.filters, op.input[3], op.kernel, op.kernel},
                                     dnnl::memory::data_type::f32, dnnl::memory::format_tag::ohwi);
        const auto plan = plan_forward(operands);
        if (options.mode == Mode::training) {
            plan_weight_gradient(operands, plan);
            if (options.needs_input_gradient) plan_input_gradient(operands, plan);
        }
    }

    KernelMemory memory() const override {
        KernelMemory bytes;
        bytes.prepared_bytes = forward_filters_.bytes() + backward_filters_.bytes();
        bytes.workspace_bytes = std::max({forward_.workspace_bytes(),
                                          gradient_.bytes() + weight_gradient_.workspace_bytes(),
                                          input_gradient_.workspace_bytes()});
        return bytes;
    }

    bool backward_reads_inputs() const override { return true; }

    std::vector<ops::Pass> passes() const override {
        std::vector<ops::Pass> passes{ops::Pass::prepare, ops::Pass::forward};
        if (options_.mode == Mode::training) {
            passes.push_back(ops::Pass::weight_gradient);
            if (options_.needs_input_gradient) passes.push_back(ops::Pass::input_gradient);
        }
        return passes;
    }

    void bind(const KernelTensors& tensors) override {
        auto* prepared = static_cast<std::byte*>(tensors.prepared);
        auto* workspace = static_cast<std::byte*>(tensors.workspace);
        void* filters = forward_filters_.bind(tensors.parameters[0], prepared);
        forward_.bind_workspace(workspace);
        forward_.bind(DNNL_ARG_SRC, tensors.inputs[0]);
        forward_.bind(DNNL_ARG_WEIGHTS, filters);
        forward_.bind(DNNL_ARG_DST, tensors.output);
        if (options_.mode != Mode::training) return;
        weight_gradient_.bind_workspace(workspace + gradient_.bytes());
        weight_gradient_.bind(DNNL_ARG_SRC, tensors.inputs[0]);
        weight_gradient_.bind(DNNL_ARG_DIFF_DST, tensors.output_gradients[0]);
        weight_gradient_.bind(DNNL_ARG_DIFF_WEIGHTS,
                              gradient_.bind(workspace, tensors.parameter_gradients[0]));
        if (!options_.needs_input_gradient) return;
        if (!backward_shares_filters_) {
            filters =
                backward_filters_.bind(tensors.parameters[0], prepared + forward_filters_.bytes());
        }
        input_gradient_.bind_workspace(workspace);
        input_gradient_.bind(DNNL_ARG_DIFF_DST, tensors.output_gradients[0]);
        input_gradient_.bind(DNNL_ARG_WEIGHTS, filters);
        input_gradient_.bind(DNNL_ARG_DIFF_SRC, tensors.input_gradients[0]);
    }

    void run(ops::Pass pass) override {
        switch (pass) {
            case ops::Pass::prepare:
                forward_filters_.refresh(context_);
                backward_filters_.refresh(context_);
                break;
            case ops::Pass::forward:
                forward_.run();
                break;
            case ops::Pass::weight_gradient:
                weight_gradient_.run();
                gradient_.run(context_);
                break;
            case ops::Pass::input_gradient:
                input_gradient_.run();
                break;
        }
    }

private:
    using ForwardPlan = dnnl::convolution_forward::primitive_desc;

    ForwardPlan plan_forward(const Operands& operands) {
        const auto kind = options_.mode == Mode::training ? dnnl::prop_kind::forward_training
                                                          : dnnl::prop_kind::forward_inference;
        const ForwardPlan plan(
            {kind, kDirect, operands.wanted_source, operands.filters, operands.wanted_target,
             operands.strides, operands.padding, operands.padding},
            caller_scratchpad(), context_.engine);
        forward_ =
            StagedPrimitive(dnnl::convolution_forward(plan), plan.scratchpad_desc(), context_);
        forward_.add(DNNL_ARG_SRC, Flow::in, operands.source, plan.src_desc());
        forward_.add(DNNL_ARG_WEIGHTS, Flow::in, plan.weights_desc(), plan.weights_desc());
        forward_.add(DNNL_ARG_DST, Flow::out, operands.target, plan.dst_desc());
        forward_filters_ = WorkingCopy(master_, plan.weights_desc(), context_);
        return plan;
    }

    void plan_weight_gradient(const Operands& operands, const ForwardPlan& hint) {
        const dnnl::convolution_backward_weights::primitive_desc plan(
            {kDirect, operands.wanted_source, operands.filter_gradients, operands.wanted_target,
             operands.strides, operands.padding, operands.padding},
            caller_scratchpad(), context_.engine, hint);
        weight_gradient_ = StagedPrimitive(dnnl::convolution_backward_weights(plan),
                                           plan.scratchpad_desc(), context_);
        weight_gradient_.add(DNNL_ARG_SRC, Flow::in, operands.source, plan.src_desc());
        weight_gradient_.add(DNNL_ARG_DIFF_DST, Flow::in, operands.target, plan.diff_dst_desc());
        weight_gradient_.add(DNNL_ARG_DIFF_WEIGHTS, Flow::out, plan.diff_weights_desc(),
                             plan.diff_weights_desc());
        gradient_ = GradientCopy(plan.diff_weights_desc(), master_, context_);
    }

    void plan_input_gradient(const Operands& operands, const ForwardPlan& hint) {
        const dnnl::convolution_backward_data::primitive_desc plan(
            {kDirect, operands.wanted_source, operands.filters, operands.wanted_target,
             operands.strides, operands.padding, operands.padding},
            caller_scratchpad(), context_.engine, hint);
        input_gradient_ = StagedPrimitive(dnnl::convolution_backward_data(plan),
                                          plan.scratchpad_desc(), context_);
        input_gradient_.add(DNNL_ARG_DIFF_DST, Flow::in, operands.target, plan.diff_dst_desc());
        input_gradient_.add(DNNL_ARG_WEIGHTS, Flow::in, plan.weights_desc(), plan.weights_desc());
        input_gradient_.add(DNNL_ARG_DIFF_SRC, Flow::out, operands.source, plan.diff_src_desc());
        backward_shares_filters_ = plan.weights_desc() == hint.weights_desc();
        if (backward_shares_filters_) return;
        backward_filters_ = WorkingCopy(master_, plan.weights_desc(), context_);
    }

    const Context& context_;
    KernelOptions options_;
    dnnl::memory::desc master_;
    StagedPrimitive forward_, weight_gradient_, input_gradient_;
    WorkingCopy forward_filters_, backward_filters_;
    bool backward_shares_filters_ = false;
    GradientCopy gradient_;
};

}  // namespace

std::unique_ptr<Kernel> build_convolution(const ops::Convolution& op, const KernelOptions& options,
                                          const Context& context) {
    return std::make_unique<ConvolutionKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
