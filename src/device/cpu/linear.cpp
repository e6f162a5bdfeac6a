// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "batch_primitive.hpp"
#include "flat_tiles.hpp"

namespace hpcai::device::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Forward = dnnl::inner_product_forward;
using BackwardData = dnnl::inner_product_backward_data;
using BackwardWeights = dnnl::inner_product_backward_weights;

/// Without a ReLU, the output is fp32 in every compute type; its gradient has the compute type.
/// With a ReLU, the workspace of each backward pass begins with the masked output gradient.
class LinearKernel final : public OperationKernel<ops::Linear, Context> {
public:
    LinearKernel(const ops::Linear& op, const KernelOptions& options, const Context& context)
        : OperationKernel(op, options, context) {
        const Dims dims{op.features, op.input[1]};
        const Desc master(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::nc);
        bias_ = Desc({op.features}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::x);
        // oneDNN chooses the layouts of weights for the first sub-batch; the others use them too.
        forward_layout_ = backward_layout_ =
            Desc(dims, dnnl_type(options.compute), dnnl::memory::format_tag::any);
        gradient_layout_ = Desc(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
        const auto sizes = sub_batch_sizes(context, op.input[0]);
        forward_ = BatchPrimitive(context, sizes,
                                  [&](std::int64_t samples) { return plan_forward(samples); });
        forward_weights_ = PackedParameter(master, forward_layout_, context);
        if (!trains()) return;
        input_gradient_ = BatchPrimitive(
            context, sizes, [&](std::int64_t samples) { return plan_input_gradient(samples); });
        backward_weights_ = PackedParameter(master, backward_layout_, context);
        const auto gradient_sizes = sub_batch_sizes(context, op.input[0], master.get_size());
        weight_gradient_ = BatchPrimitive(context, gradient_sizes, [&](std::int64_t samples) {
            return plan_weight_gradient(samples);
        });
        gradient_ = ParameterGradient(gradient_layout_, master, gradient_sizes.size(), context);
        bias_gradient_ = ParameterGradient(bias_, bias_, gradient_sizes.size(), context);
        if (op.relu) masked_bytes_ = aligned_bytes(outputs(op.input[0], options.compute));
    }

    KernelMemory memory() const override {
        return {.prepared_bytes = forward_weights_.bytes() + backward_weights_.bytes(),
                .workspace_bytes =
                    std::max({forward_.workspace_bytes(),
                              masked_bytes_ + gradient_.bytes() + bias_gradient_.bytes() +
                                  weight_gradient_.workspace_bytes(),
                              masked_bytes_ + input_gradient_.workspace_bytes()})};
    }

    void bind(const KernelTensors& tensors) override {
        OperationKernel::bind(tensors);
        auto* prepared = static_cast<std::byte*>(tensors.prepared);
        auto* workspace = static_cast<std::byte*>(tensors.workspace);
        forward_.bind_workspace(workspace);
        forward_.bind(DNNL_ARG_SRC, tensors.inputs[0]);
        forward_.bind_parameter(DNNL_ARG_WEIGHTS,
                                forward_weights_.bind(tensors.parameters[0], prepared));
        forward_.bind_parameter(DNNL_ARG_BIAS, tensors.parameters[1]);
        forward_.bind(DNNL_ARG_DST, tensors.output);
        if (!trains()) return;
        void* dy = op_.relu ? workspace : output_gradient();
        workspace += masked_bytes_;
        input_gradient_.bind_workspace(workspace);
        input_gradient_.bind(DNNL_ARG_DIFF_DST, dy);
        input_gradient_.bind_parameter(
            DNNL_ARG_WEIGHTS,
            backward_weights_.bind(tensors.parameters[0], prepared + forward_weights_.bytes()));
        input_gradient_.bind(DNNL_ARG_DIFF_SRC, tensors.input_gradients[0]);
        gradient_.bind(workspace, tensors.parameter_gradients[0]);
        workspace += gradient_.bytes();
        bias_gradient_.bind(workspace, tensors.parameter_gradients[1]);
        weight_gradient_.bind_workspace(workspace + bias_gradient_.bytes());
        weight_gradient_.bind(DNNL_ARG_SRC, tensors.inputs[0]);
        weight_gradient_.bind(DNNL_ARG_DIFF_DST, dy);
        weight_gradient_.bind_gradient(DNNL_ARG_DIFF_WEIGHTS, gradient_);
        weight_gradient_.bind_gradient(DNNL_ARG_DIFF_BIAS, bias_gradient_);
    }

private:
    void prepare() override {
        forward_weights_.refresh(context_);
        backward_weights_.refresh(context_);
    }
    void forward() override {
        forward_.run();
        if (op_.relu) flat_.add(tensors_.output, nullptr, tensors_.output, true);
    }
    void weight_gradient() override {
        mask_gradient();
        weight_gradient_.run();
        gradient_.run(context_);
        bias_gradient_.run(context_);
    }
    void input_gradient() override {
        mask_gradient();
        input_gradient_.run();
    }

    Desc inputs(std::int64_t samples) const {
        return value_desc(context_.layouts, {samples, op_.input[1]}, options_.compute);
    }
    Desc outputs(std::int64_t samples, DType dtype) const {
        return value_desc(context_.layouts, {samples, op_.features}, dtype);
    }

    void mask_gradient() const {
        if (!op_.relu) return;
        flat_.relu_gradient(output_gradient(), added_output_gradient(), tensors_.output,
                            tensors_.workspace);
    }

    StagedPrimitive plan_forward(std::int64_t samples) {
        const auto kind =
            trains() ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
        const auto source = inputs(samples);
        const auto target = outputs(samples, op_.relu ? options_.compute : DType::f32);
        const auto plan = plan_forward_pass<Forward>(context_.engine, kind, source, forward_layout_,
                                                     bias_, target);
        forward_layout_ = plan.weights_desc();
        StagedPrimitive primitive(Forward(plan), plan.scratchpad_desc(), context_);
        primitive.add(DNNL_ARG_SRC, source);
        primitive.add(DNNL_ARG_WEIGHTS, forward_layout_);
        primitive.add(DNNL_ARG_BIAS, bias_);
        primitive.add(DNNL_ARG_DST, target);
        return primitive;
    }

    Forward::primitive_desc forward_hint(std::int64_t samples) const {
        const Desc weights(dims_of(forward_layout_), dnnl_type(options_.compute),
                           dnnl::memory::format_tag::any);
        return plan_forward_pass<Forward>(context_.engine, dnnl::prop_kind::forward_training,
                                          inputs(samples), weights,
                                          outputs(samples, options_.compute));
    }

    StagedPrimitive plan_input_gradient(std::int64_t samples) {
        const auto source = inputs(samples), target = outputs(samples, options_.compute);
        const auto plan = plan_backward_pass<BackwardData>(context_.engine, forward_hint(samples),
                                                           source, backward_layout_, target);
        backward_layout_ = plan.weights_desc();
        StagedPrimitive primitive(BackwardData(plan), plan.scratchpad_desc(), context_);
        primitive.add(DNNL_ARG_DIFF_DST, target);
        primitive.add(DNNL_ARG_WEIGHTS, backward_layout_);
        primitive.add(DNNL_ARG_DIFF_SRC, source);
        return primitive;
    }

    StagedPrimitive plan_weight_gradient(std::int64_t samples) {
        const auto source = inputs(samples), target = outputs(samples, options_.compute);
        const auto plan = plan_backward_pass<BackwardWeights>(
            context_.engine, forward_hint(samples), source, gradient_layout_, bias_, target);
        gradient_layout_ = plan.diff_weights_desc();
        StagedPrimitive primitive(BackwardWeights(plan), plan.scratchpad_desc(), context_);
        primitive.add(DNNL_ARG_SRC, source);
        primitive.add(DNNL_ARG_DIFF_DST, target);
        primitive.add(DNNL_ARG_DIFF_WEIGHTS, gradient_layout_);
        primitive.add(DNNL_ARG_DIFF_BIAS, bias_);
        return primitive;
    }

    Desc forward_layout_, backward_layout_, gradient_layout_, bias_;
    BatchPrimitive forward_, weight_gradient_, input_gradient_;
    PackedParameter forward_weights_, backward_weights_;
    ParameterGradient gradient_, bias_gradient_;
    const FlatLoops flat_{context_, output_shape(op_).elements(), options_.compute};
    std::size_t masked_bytes_ = 0;
};

}  // namespace

HPCAI_BUILD_KERNEL(Linear)

}  // namespace hpcai::device::cpu
