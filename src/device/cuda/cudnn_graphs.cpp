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
            throw Error(ExitCode::internal, "cuDNN convolutions do not support this type");
    }
}

/// The identifier of an operand in its graph; cuDNN gives other tensors different identifiers.
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
        switch (pass) {
            case ConvolutionPass::forward:
                output(forward(image()));
                break;
            case ConvolutionPass::forward_with_statistics:
                statistics(output(forward(image())));
                break;
            case ConvolutionPass::normalized_forward_with_statistics:
                statistics(output(forward(normalized(image()))));
                break;
            case ConvolutionPass::input_gradient:
                mark_output(input_gradient(), Operand::image, type());
                break;
            case ConvolutionPass::input_gradient_with_norm:
                norm_gradient(input_gradient());
                break;
            case ConvolutionPass::weight_gradient:
                weight_gradient(image());
                break;
            case ConvolutionPass::normalized_weight_gradient:
                weight_gradient(normalized(image()));
                break;
        }
    }

private:
    fe::DataType_t type() const { return cudnn_type(s_.dtype); }

    /// (n, c, h, w) in cuDNN's order of axes, channels last in memory.
    Tensor input(Operand operand, std::array<std::int64_t, 4> dim, fe::DataType_t dtype) {
        const auto [n, c, h, w] = dim;
        return graph_.tensor(fe::graph::Tensor_attributes()
                                 .set_uid(uid(operand))
                                 .set_dim({n, c, h, w})
                                 .set_stride({c * h * w, 1, c * w, c})
                                 .set_data_type(dtype));
    }
    Tensor image(Operand operand = Operand::image) {
        return input(operand, {s_.images, s_.channels, s_.height, s_.width}, type());
    }
    Tensor filters() {
        return input(Operand::filters, {s_.filters, s_.channels, s_.kernel, s_.kernel}, type());
    }
    Tensor output_gradient() {
        return input(Operand::output,
                     {s_.images, s_.filters, s_.output_height(), s_.output_width()}, type());
    }
    Tensor per_channel(Operand operand, fe::DataType_t dtype) {
        return input(operand, {1, s_.channels, 1, 1}, dtype);
    }

    void mark_output(const Tensor& tensor, Operand operand, fe::DataType_t dtype) {
        tensor->set_output(true).set_uid(uid(operand)).set_data_type(dtype);
    }
    Tensor output(const Tensor& y) {
        mark_output(y, Operand::output, type());
        return y;
    }

    Tensor pointwise(fe::PointwiseMode_t mode, const Tensor& a, const Tensor& b) {
        return graph_.pointwise(a, b, fe::graph::Pointwise_attributes().set_mode(mode));
    }

    template <typename Attributes>
    Attributes geometry() const {
        return Attributes()
            .set_padding({s_.padding, s_.padding})
            .set_stride({s_.stride, s_.stride})
            .set_dilation({1, 1});
    }

    Tensor forward(const Tensor& x) {
        return graph_.conv_fprop(x, filters(), geometry<fe::graph::Conv_fprop_attributes>());
    }

    /// The start of ConvBNfprop and ConvBNwgrad in NVIDIA's cuDNN guide,
    /// developer/graph-api, "Specialized Pre-Compiled Engines", and of "SBRCS" in the samples of
    /// cudnn-frontend, samples/cpp/convolution/fprop.cpp. The convolution reads max(scale x +
    /// shift, 0). scale and shift have the type of x; the tensors in between are not stored. Their
    /// rounding is not documented: that sample declares them f32, test/python/test_conv_genstats.py
    /// fp16. From compute capability 9.0 on, the guide supports all three operations or none of
    /// them.
    Tensor normalized(const Tensor& x) {
        using Mode = fe::PointwiseMode_t;
        const Tensor scaled = pointwise(Mode::MUL, x, per_channel(Operand::scale, type()));
        const Tensor shifted = pointwise(Mode::ADD, scaled, per_channel(Operand::shift, type()));
        return graph_.pointwise(shifted,
                                fe::graph::Pointwise_attributes().set_mode(Mode::RELU_FWD));
    }

    /// "Generate Stats" in cudnn-frontend, docs/operations/Normalizations.md: the sums of y and y^2
    /// per channel. ConvBNfprop stores y, so the sums are those of the stored y; the reference
    /// in samples/legacy_samples/cpu_references.h, gen_stats_cpu, also starts from fp16.
    void statistics(const Tensor& y) {
        const auto [sum, square_sum] = graph_.genstats(y, fe::graph::Genstats_attributes());
        mark_output(sum, Operand::sum, fe::DataType_t::FLOAT);
        mark_output(square_sum, Operand::square_sum, fe::DataType_t::FLOAT);
    }

    Tensor input_gradient() {
        const Tensor dx = graph_.conv_dgrad(output_gradient(), filters(),
                                            geometry<fe::graph::Conv_dgrad_attributes>());
        // With a stride, images of several sizes have the same output size.
        dx->set_dim({s_.images, s_.channels, s_.height, s_.width});
        return dx;
    }

    void weight_gradient(const Tensor& x) {
        const Tensor dw =
            graph_.conv_wgrad(output_gradient(), x, geometry<fe::graph::Conv_wgrad_attributes>());
        dw->set_dim({s_.filters, s_.channels, s_.kernel, s_.kernel});
        mark_output(dw, Operand::gradient, type());
    }

    /// DgradDreluBNBwdWeight in the guide's section named at normalized(), as
    /// samples/cpp/convolution/dgrads.cpp builds it. RELU_BWD takes f32: the gradient dx, and the
    /// norm's output recomputed from x. Its result dy is stored in the type of images, and
    /// dbn_weight reads and sums dy. dbn_weight yields dgamma, dbeta and A, B, C for "dBNApply":
    /// the gradient of x is A dy + B x + C. The guide has no other formula, but for n pixels
    /// BatchNorm's gradient leaves one choice:
    ///   dgamma = sum(dy xhat), dbeta = sum(dy), with xhat = (x - mean) / deviation;
    ///   gradient of x = (gamma / deviation) * (dy - dbeta / n - xhat dgamma / n);
    ///   A = gamma / deviation, B = -A dgamma / (n deviation), C = -A dbeta / n - B mean.
    /// All five results are f32. The guide does not state that RELU_BWD passes nothing at 0, and
    /// has only fp16; in fp16 the tests of fused operations confirm these formulas on an H200.
    void norm_gradient(const Tensor& dx) {
        using Mode = fe::PointwiseMode_t;
        constexpr auto kFloat = fe::DataType_t::FLOAT;
        const Tensor x = image(Operand::norm_input);
        const Tensor mean = per_channel(Operand::mean, kFloat);
        const Tensor inverse_deviation = per_channel(Operand::inverse_deviation, kFloat);
        const Tensor scale = per_channel(Operand::scale, kFloat);
        Tensor y = pointwise(Mode::SUB, x, mean);
        y = pointwise(Mode::MUL, y, inverse_deviation);
        y = pointwise(Mode::MUL, y, scale);
        y = pointwise(Mode::ADD, y, per_channel(Operand::shift, kFloat));
        const Tensor dy = pointwise(Mode::RELU_BWD, dx, y);
        mark_output(dy, Operand::image, type());
        const auto sums = graph_.dbn_weight(dy, x, mean, inverse_deviation, scale,
                                            fe::graph::DBN_weight_attributes());
        constexpr std::array<Operand, 5> kSums{Operand::gamma_gradient, Operand::beta_gradient,
                                               Operand::factor_dy, Operand::factor_x,
                                               Operand::constant};
        for (std::size_t i = 0; i < kSums.size(); ++i) mark_output(sums[i], kSums[i], kFloat);
    }

    fe::graph::Graph& graph_;
    const ConvolutionShape& s_;
};

/// The numerical properties that plans of this shape must not have.
std::vector<fe::NumericalNote_t> excluded_notes(const ConvolutionShape& shape,
                                                const Context& context) {
    std::vector<fe::NumericalNote_t> notes{fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION};
    if (shape.dtype == DType::f32 && !shape.tf32) {
        notes.push_back(fe::NumericalNote_t::TENSOR_CORE);
        notes.push_back(fe::NumericalNote_t::DOWN_CONVERT_INPUTS);
        notes.push_back(fe::NumericalNote_t::WINOGRAD);
        notes.push_back(fe::NumericalNote_t::FFT);
    }
    if (context.deterministic) notes.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
    return notes;
}

}  // namespace

struct ConvolutionPlans::Graph {
    fe::graph::Graph graph;
    cudnnHandle_t handle = nullptr;

    fe::error_t open(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context,
                     Search search) {
        handle = context.cudnn;
        graph.set_io_data_type(cudnn_type(shape.dtype))
            .set_intermediate_data_type(fe::DataType_t::FLOAT)
            .set_compute_data_type(fe::DataType_t::FLOAT);
        if (handle == nullptr) {
            graph.set_sm_version(context.sm).set_device_properties(device_properties(context));
        }
        Builder(graph, shape).build(pass);
        if (auto status = graph.validate(); status.is_bad()) return status;
        auto status =
            handle == nullptr ? graph.build_operation_graph() : graph.build_operation_graph(handle);
        if (status.is_bad()) return status;
        using fe::HeurMode_t;
        std::vector<HeurMode_t> modes{HeurMode_t::A};
        if (search == Search::all) modes.push_back(HeurMode_t::B);
        modes.push_back(HeurMode_t::FALLBACK);
        status = graph.create_execution_plans(modes);
        if (status.is_good()) graph.deselect_numeric_notes(excluded_notes(shape, context));
        return status;
    }
};

ConvolutionPlans::ConvolutionPlans(const ConvolutionShape& shape, ConvolutionPass pass,
                                   const Context& context, Search search)
    : graph_(std::make_unique<Graph>()) {
    check(graph_->open(shape, pass, context, search),
          fmt::format("{} of {}", name_of(pass), to_string(shape)));
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
