// SPDX-License-Identifier: Apache-2.0
// The only file that includes cudnn_frontend.h, which takes half a minute to compile.
#include "cudnn_graphs.hpp"

#include <cudnn_frontend.h>

#include <hpcai/base/error.hpp>

namespace hpcai::device::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

void check(fe::error_t status, std::string_view what) {
    ensure(status.is_good(), "{}: cuDNN reports {}", what, status.get_message());
}

fe::DataType_t cudnn_type(DType dtype) {
    switch (dtype) {
        case DType::f32:
            return fe::DataType_t::FLOAT;
        case DType::f16:
            return fe::DataType_t::HALF;
        case DType::bf16:
            return fe::DataType_t::BFLOAT16;
        default:
            throw Error(ExitCode::internal, "cuDNN convolutions compute in f32, f16 or bf16 only");
    }
}

/// The identifier of an operand in its graph; cuDNN numbers the other tensors itself.
std::int64_t uid(Operand operand) {
    return static_cast<std::int64_t>(operand) + 1;
}

/// The device properties of the context, for graphs that are built without a device.
std::shared_ptr<fe::DeviceProperties> device_properties(const Context& context) {
    std::vector<std::uint8_t> bytes(context.properties.begin(), context.properties.end());
    bytes.push_back(0);  // cuDNN reads up to this byte
    auto properties = std::make_shared<fe::DeviceProperties>();
    check(properties->deserialize(bytes), "reading device properties");
    return properties;
}

/// Adds the operations of one pass to a graph.
class Builder {
public:
    Builder(fe::graph::Graph& graph, const ConvolutionShape& shape) : graph_(graph), s_(shape) {}

    void build(ConvolutionPass pass) {
        if (pass == ConvolutionPass::input_gradient) return input_gradient();
        if (pass == ConvolutionPass::weight_gradient) return weight_gradient();
        const Tensor y = forward();
        if (pass == ConvolutionPass::forward_with_statistics) statistics(y);
    }

private:
    fe::DataType_t type() const { return cudnn_type(s_.dtype); }

    /// `dim` is (n, c, h, w), cuDNN's order of axes; memory is channels-last.
    Tensor input(Operand operand, std::array<std::int64_t, 4> dim) {
        const auto [n, c, h, w] = dim;
        return graph_.tensor(fe::graph::Tensor_attributes()
                                 .set_uid(uid(operand))
                                 .set_dim({n, c, h, w})
                                 .set_stride({c * h * w, 1, c * w, c})
                                 .set_data_type(type()));
    }
    Tensor image() { return input(Operand::image, {s_.images, s_.channels, s_.height, s_.width}); }
    Tensor filters() {
        return input(Operand::filters, {s_.filters, s_.channels, s_.kernel, s_.kernel_width()});
    }
    Tensor output_gradient() {
        return input(Operand::output,
                     {s_.images, s_.filters, s_.output_height(), s_.output_width()});
    }

    void mark_output(const Tensor& tensor, Operand operand, fe::DataType_t dtype) {
        tensor->set_output(true).set_uid(uid(operand)).set_data_type(dtype);
    }

    template <typename Attributes>
    Attributes geometry() const {
        return Attributes()
            .set_padding({s_.padding, s_.width_padding()})
            .set_stride({s_.stride, s_.stride})
            .set_dilation({1, 1});
    }

    Tensor forward() {
        const Tensor y =
            graph_.conv_fprop(image(), filters(), geometry<fe::graph::Conv_fprop_attributes>());
        mark_output(y, Operand::output, type());
        return y;
    }

    /// Adds "Generate Stats" (docs/operations/Normalizations.md of cudnn-frontend): the sums of y
    /// and of y^2 per channel. With forward(), this is ConvBNfprop without operations on x
    /// ("Specialized Pre-Compiled Engines" in developer/graph-api of NVIDIA's cuDNN guide). The
    /// sums are of y as stored in fp16, as in gen_stats_cpu of cudnn-frontend
    /// (samples/legacy_samples/cpu_references.h).
    void statistics(const Tensor& y) {
        const auto [sum, square_sum] = graph_.genstats(y, fe::graph::Genstats_attributes());
        mark_output(sum, Operand::sum, fe::DataType_t::FLOAT);
        mark_output(square_sum, Operand::square_sum, fe::DataType_t::FLOAT);
    }

    void input_gradient() {
        const Tensor dx = graph_.conv_dgrad(output_gradient(), filters(),
                                            geometry<fe::graph::Conv_dgrad_attributes>());
        // cuDNN cannot infer the size: with a stride, several image sizes have one output size.
        dx->set_dim({s_.images, s_.channels, s_.height, s_.width});
        mark_output(dx, Operand::image, type());
    }

    void weight_gradient() {
        const Tensor dw = graph_.conv_wgrad(output_gradient(), image(),
                                            geometry<fe::graph::Conv_wgrad_attributes>());
        dw->set_dim({s_.filters, s_.channels, s_.kernel, s_.kernel_width()});
        mark_output(dw, Operand::gradient, type());
    }

    fe::graph::Graph& graph_;
    const ConvolutionShape& s_;
};

/// The numerical properties that plans of this shape must not have.
std::vector<fe::NumericalNote_t> excluded_notes(const ConvolutionShape& shape,
                                                const Context& context) {
    std::vector<fe::NumericalNote_t> notes{fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION};
    if (shape.dtype == DType::f32 && !shape.tf32) {
        using Note = fe::NumericalNote_t;
        notes.insert(notes.end(),
                     {Note::TENSOR_CORE, Note::DOWN_CONVERT_INPUTS, Note::WINOGRAD, Note::FFT});
    }
    if (context.deterministic) notes.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
    return notes;
}

}  // namespace

struct ConvolutionPlans::Graph {
    fe::graph::Graph graph;
    cudnnHandle_t handle = nullptr;
};

ConvolutionPlans::ConvolutionPlans(const ConvolutionShape& shape, ConvolutionPass pass,
                                   const Context& context, Search search)
    : graph_(std::make_unique<Graph>()) {
    using fe::HeurMode_t;
    const std::string what = fmt::format("{} of {}", name_of(pass), to_string(shape));
    fe::graph::Graph& graph = graph_->graph;
    const cudnnHandle_t handle = graph_->handle = context.cudnn;
    graph.set_io_data_type(cudnn_type(shape.dtype))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    if (handle == nullptr) {
        graph.set_sm_version(context.sm).set_device_properties(device_properties(context));
    }
    Builder(graph, shape).build(pass);
    check(graph.validate(), what);
    check(handle == nullptr ? graph.build_operation_graph() : graph.build_operation_graph(handle),
          what);
    std::vector<HeurMode_t> modes{HeurMode_t::A};
    if (search == Search::all) modes.push_back(HeurMode_t::B);
    modes.push_back(HeurMode_t::FALLBACK);
    check(graph.create_execution_plans(modes), what);
    graph.deselect_numeric_notes(excluded_notes(shape, context));
}

ConvolutionPlans::~ConvolutionPlans() = default;

int ConvolutionPlans::count() const {
    return static_cast<int>(graph_->graph.get_execution_plan_count());
}

std::string ConvolutionPlans::name(int plan) const {
    std::string name;
    check(graph_->graph.get_plan_name_at_index(plan, name), "naming a plan");
    return name;
}

bool ConvolutionPlans::finalize(int plan) {
    return graph_->graph.build_plan_at_index(plan).is_good();
}

std::size_t ConvolutionPlans::workspace_bytes(int plan) const {
    std::int64_t bytes = 0;
    check(graph_->graph.get_workspace_size_plan_at_index(plan, bytes), "sizing a workspace");
    return static_cast<std::size_t>(bytes);
}

void ConvolutionPlans::execute(int plan, const Operands& operands, void* workspace) const {
    std::unordered_map<std::int64_t, void*> addresses;
    for (int operand = 0; operand < kOperands; ++operand) {
        void* address = operands[static_cast<Operand>(operand)];
        if (address != nullptr) addresses[uid(static_cast<Operand>(operand))] = address;
    }
    check(graph_->graph.execute_plan_at_index(graph_->handle, addresses, workspace, plan),
          "running a convolution");
}

}  // namespace hpcai::device::cuda
