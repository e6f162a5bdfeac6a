// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "batch_primitive.hpp"
#include "int8_convolution.hpp"

namespace hpcai::device::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Flow = StagedPrimitive::Flow;

Desc any_layout(const Dims& dims, dnnl::memory::data_type type) {
    return {dims, type, dnnl::memory::format_tag::any};
}

/// The layouts of a convolution's input and output. `source` and `target` are those of the engine,
/// `wanted_...` those requested from oneDNN: any layout if oneDNN is slow in the engine's.
struct ValueLayouts {
    Desc source, target, wanted_source, wanted_target;

    ValueLayouts(const ops::Convolution& op, const KernelOptions& options, const Layouts& layouts)
        : source(value_desc(layouts, op.input, options.compute)),
          target(value_desc(layouts, output_shape(op), options.compute)),
          wanted_source(source),
          wanted_target(target) {
        const bool needs_gradient = options.mode == Mode::training && options.needs_input_gradient;
        if (!is_fast_layout(layouts, op.input, output_shape(op), needs_gradient)) {
            use_any_layouts(options.compute);
        }
    }

    void use_any_layouts(DType compute) {
        wanted_source = any_layout(dims_of(source), dnnl_type(compute));
        wanted_target = any_layout(dims_of(target), dnnl_type(compute));
    }
};

/// Names of oneDNN's slow reference implementations begin with "ref".
bool is_reference(const dnnl::primitive_desc_base& plan) {
    return std::string_view(plan.impl_info_str()).starts_with("ref");
}

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

/// Plans the pass in int8; null if it is not computed in int8.
std::unique_ptr<Int8Convolution> plan_int8(const ops::Convolution& op, ops::Pass pass,
                                           const KernelOptions& options, const Context& context) {
    if (!options.int8 || !computes_in_int8(op, pass)) return nullptr;
    return std::make_unique<Int8Convolution>(op, pass, options.rounding, context);
}

class ConvolutionKernel final : public OperationKernel<ops::Convolution, Context> {
public:
    ConvolutionKernel(const ops::Convolution& op, const KernelOptions& options,
                      const Context& context)
        : OperationKernel(op, options, context) {
        const Dims dims{op.filters, op.input[3], op.kernel, op.kernel};
        // Canonical filters are (K, R, S, C); oneDNN names the axes (K, C, R, S).
        const Desc master(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ohwi);
        // oneDNN chooses the layouts of filters for the first sub-batch; the others use them too.
        forward_layout_ = backward_layout_ = any_layout(dims, dnnl_type(options.compute));
        gradient_layout_ = any_layout(dims, dnnl::memory::data_type::f32);
        const auto sizes = sub_batch_sizes(context, op.input[0]);
        int8_forward_ = plan_int8(op, ops::Pass::forward, options, context);
        if (!int8_forward_) {
            forward_ = BatchPrimitive(context, sizes,
                                      [&](std::int64_t samples) { return plan_forward(samples); });
            forward_filters_ = PackedParameter(master, forward_layout_, context);
        }
        if (trains() && options.needs_input_gradient) {
            int8_input_gradient_ = plan_int8(op, ops::Pass::input_gradient, options, context);
        }
        if (int8_forward_) plan_int8_filters();
        if (!trains()) return;
        const auto gradient_sizes = sub_batch_sizes(context, op.input[0], master.get_size());
        weight_gradient_ = BatchPrimitive(context, gradient_sizes, [&](std::int64_t samples) {
            return plan_weight_gradient(samples);
        });
        gradient_ = ParameterGradient(gradient_layout_, master, gradient_sizes.size(), context);
        if (!options.needs_input_gradient || int8_input_gradient_) return;
        input_gradient_ = BatchPrimitive(
            context, sizes, [&](std::int64_t samples) { return plan_input_gradient(samples); });
        if (backward_layout_ == forward_layout_) return;
        backward_filters_ = PackedParameter(master, backward_layout_, context);
    }

    KernelMemory memory() const override {
        KernelMemory bytes;
        bytes.prepared_bytes = forward_filters_.bytes() + backward_filters_.bytes();
        bytes.workspace_bytes = std::max({forward_.workspace_bytes(),
                                          gradient_.bytes() + weight_gradient_.workspace_bytes(),
                                          input_gradient_.workspace_bytes()});
        if (int8_filters_) {
            bytes.prepared_bytes += int8_filters_->prepared_bytes();
            bytes.workspace_bytes =
                std::max(bytes.workspace_bytes, int8_filters_->workspace_bytes());
        }
        for (const auto* pass : {&int8_forward_, &int8_input_gradient_}) {
            if (!*pass) continue;
            bytes.workspace_bytes = std::max(bytes.workspace_bytes, (*pass)->workspace_bytes());
        }
        return bytes;
    }

    void bind(const KernelTensors& tensors) override {
        auto* prepared = static_cast<std::byte*>(tensors.prepared);
        auto* workspace = static_cast<std::byte*>(tensors.workspace);
        void* filters = nullptr;
        if (int8_forward_) {
            int8_filters_->bind(tensors.parameters[0], prepared, workspace);
            prepared += int8_filters_->prepared_bytes();
            int8_forward_->bind({static_cast<float*>(tensors.inputs[0]),
                                 static_cast<float*>(tensors.output), int8_filters_->plain(),
                                 workspace, tensors.scalars});
        } else {
            filters = forward_filters_.bind(tensors.parameters[0], prepared);
            prepared += forward_filters_.bytes();
            forward_.bind_workspace(workspace);
            forward_.bind(DNNL_ARG_SRC, tensors.inputs[0]);
            forward_.bind_parameter(DNNL_ARG_WEIGHTS, filters);
            forward_.bind(DNNL_ARG_DST, tensors.output);
        }
        if (!trains()) return;
        gradient_.bind(workspace, tensors.parameter_gradients[0]);
        weight_gradient_.bind_workspace(workspace + gradient_.bytes());
        weight_gradient_.bind(DNNL_ARG_SRC, tensors.inputs[0]);
        weight_gradient_.bind(DNNL_ARG_DIFF_DST, tensors.output_gradients[0]);
        weight_gradient_.bind_gradient(DNNL_ARG_DIFF_WEIGHTS, gradient_);
        if (!options_.needs_input_gradient) return;
        if (int8_input_gradient_) {
            int8_input_gradient_->bind({static_cast<float*>(tensors.output_gradients[0]),
                                        static_cast<float*>(tensors.input_gradients[0]),
                                        int8_filters_->rotated(), workspace, tensors.scalars});
            return;
        }
        if (filters == nullptr || backward_layout_ != forward_layout_) {
            filters = backward_filters_.bind(tensors.parameters[0], prepared);
        }
        input_gradient_.bind_workspace(workspace);
        input_gradient_.bind(DNNL_ARG_DIFF_DST, tensors.output_gradients[0]);
        input_gradient_.bind_parameter(DNNL_ARG_WEIGHTS, filters);
        input_gradient_.bind(DNNL_ARG_DIFF_SRC, tensors.input_gradients[0]);
    }

private:
    void prepare() override {
        if (int8_filters_) int8_filters_->prepare();
        forward_filters_.refresh(context_);
        backward_filters_.refresh(context_);
    }
    void forward() override { int8_forward_ ? int8_forward_->run() : forward_.run(); }
    void weight_gradient() override {
        weight_gradient_.run();
        gradient_.run(context_);
    }
    void input_gradient() override {
        int8_input_gradient_ ? int8_input_gradient_->run() : input_gradient_.run();
    }

    /// An input gradient in int8 implies a forward pass in int8.
    void plan_int8_filters() {
        std::optional<Desc> rotated;
        if (int8_input_gradient_) rotated = int8_input_gradient_->packed_filters();
        int8_filters_ =
            std::make_unique<Int8Filters>(op_, int8_forward_->packed_filters(), rotated, context_);
    }

    ValueLayouts layouts_for(std::int64_t samples) const {
        ops::Convolution sub_batch = op_;
        sub_batch.input[0] = samples;
        return {sub_batch, options_, context_.layouts};
    }

    /// Plans the pass for a number of samples. Where oneDNN has only a reference implementation for
    /// the layout of the engine, values are copied to a layout that oneDNN chooses. An example is
    /// the gradient of filters for very small images without AVX-512.
    auto plan_optimized(std::int64_t samples, const auto& plan_for) const {
        ValueLayouts values = layouts_for(samples);
        auto plan = plan_for(values);
        if (is_reference(plan)) {
            ValueLayouts relaxed = values;
            relaxed.use_any_layouts(options_.compute);
            auto other = plan_for(relaxed);
            if (!is_reference(other)) return std::pair(relaxed, other);
        }
        return std::pair(values, plan);
    }

    /// Plans the forward pass; oneDNN also needs this plan for the backward passes.
    auto forward_plan(const ValueLayouts& values) const {
        const auto kind =
            trains() ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
        return plan_forward_pass<dnnl::convolution_forward>(
            context_.engine, kind, kDirect, values.wanted_source, forward_layout_,
            values.wanted_target, strides_, padding_, padding_);
    }

    StagedPrimitive plan_forward(std::int64_t samples) {
        const auto [values, plan] = plan_optimized(
            samples, [&](const ValueLayouts& wanted) { return forward_plan(wanted); });
        forward_layout_ = plan.weights_desc();
        StagedPrimitive primitive(dnnl::convolution_forward(plan), plan.scratchpad_desc(),
                                  context_);
        primitive.add(DNNL_ARG_SRC, Flow::in, values.source, plan.src_desc());
        primitive.add(DNNL_ARG_WEIGHTS, forward_layout_);
        primitive.add(DNNL_ARG_DST, Flow::out, values.target, plan.dst_desc());
        return primitive;
    }

    StagedPrimitive plan_weight_gradient(std::int64_t samples) {
        const auto [values, plan] = plan_optimized(samples, [&](const ValueLayouts& wanted) {
            return plan_backward_pass<dnnl::convolution_backward_weights>(
                context_.engine, forward_plan(wanted), kDirect, wanted.wanted_source,
                gradient_layout_, wanted.wanted_target, strides_, padding_, padding_);
        });
        gradient_layout_ = plan.diff_weights_desc();
        StagedPrimitive primitive(dnnl::convolution_backward_weights(plan), plan.scratchpad_desc(),
                                  context_);
        primitive.add(DNNL_ARG_SRC, Flow::in, values.source, plan.src_desc());
        primitive.add(DNNL_ARG_DIFF_DST, Flow::in, values.target, plan.diff_dst_desc());
        primitive.add(DNNL_ARG_DIFF_WEIGHTS, gradient_layout_);
        return primitive;
    }

    StagedPrimitive plan_input_gradient(std::int64_t samples) {
        const auto [values, plan] = plan_optimized(samples, [&](const ValueLayouts& wanted) {
            return plan_backward_pass<dnnl::convolution_backward_data>(
                context_.engine, forward_plan(wanted), kDirect, wanted.wanted_source,
                backward_layout_, wanted.wanted_target, strides_, padding_, padding_);
        });
        backward_layout_ = plan.weights_desc();
        StagedPrimitive primitive(dnnl::convolution_backward_data(plan), plan.scratchpad_desc(),
                                  context_);
        primitive.add(DNNL_ARG_DIFF_DST, Flow::in, values.target, plan.diff_dst_desc());
        primitive.add(DNNL_ARG_WEIGHTS, backward_layout_);
        primitive.add(DNNL_ARG_DIFF_SRC, Flow::out, values.source, plan.diff_src_desc());
        return primitive;
    }

    const Dims strides_{op_.stride, op_.stride}, padding_{op_.padding, op_.padding};
    Desc forward_layout_, backward_layout_, gradient_layout_;  // of the filters
    BatchPrimitive forward_, weight_gradient_, input_gradient_;
    std::unique_ptr<Int8Convolution> int8_forward_, int8_input_gradient_;  // null: not in int8
    std::unique_ptr<Int8Filters> int8_filters_;                            // of both passes
    // backward_filters_ are for an fp32 or bf16 input gradient that cannot read forward_filters_.
    PackedParameter forward_filters_, backward_filters_;
    ParameterGradient gradient_;
};

}  // namespace

KernelPtr build(const ops::Convolution& op, const KernelOptions& options, const Context& context) {
    if (op.sums) throw_unsupported(op);
    return std::make_unique<ConvolutionKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
