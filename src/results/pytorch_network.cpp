// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <fmt/format.h>

#include <hpcai/base/error.hpp>
#include <hpcai/results/pytorch_network.hpp>

namespace hpcai::results {
namespace {

constexpr const char* kModule = R"(# Written by `hpcai500 export`.
from torch import nn
from torch.nn import functional


class Network(nn.Module):
    """Logits (N, {classes}) of normalized images (N, {channels}, {height}, {width})."""

    def __init__(self):
        super().__init__()
{layers}
    def place(self, name, layer):
        *path, last = name.split(".")
        parent = self
        for part in path:
            if part not in dict(parent.named_children()):
                parent.add_module(part, nn.Module())
            parent = getattr(parent, part)
        parent.add_module(last, layer)

    def forward(self, images):
        layer = self.get_submodule
{calls}        return {logits}
)";

/// Writes the nodes of a graph as Python, one after the other.
class NetworkText {
public:
    explicit NetworkText(const graph::Graph& graph)
        : graph_(graph), names_(graph.values().size(), "images") {
        for (const graph::Node& node : graph.nodes()) {
            node_ = &node;
            std::visit([this](const auto& operation) { write(operation); }, node.operation);
        }
    }

    std::string text() const {
        const tensor::Shape& images = graph_.value(graph_.find("images")).shape;
        const graph::Node& loss = graph_.nodes().back();
        return fmt::format(kModule, fmt::arg("classes", graph_.value(loss.inputs.front()).shape[1]),
                           fmt::arg("channels", images[3]), fmt::arg("height", images[1]),
                           fmt::arg("width", images[2]), fmt::arg("layers", layers_),
                           fmt::arg("calls", calls_),
                           fmt::arg("logits", names_[loss.inputs.front()]));
    }

private:
    const std::string& input(std::size_t index = 0) const { return names_[node_->inputs[index]]; }

    void call(const std::string& expression) {
        names_[node_->output] = fmt::format("x{}", node_->output);
        calls_ += fmt::format("        {} = {}\n", names_[node_->output], expression);
    }
    void place(const std::string& layer) {
        layers_ += fmt::format("        self.place(\"{}\", nn.{})\n", node_->name, layer);
        call(fmt::format("layer(\"{}\")({})", node_->name, input()));
    }

    void write(const ops::InputNormalize&) {}
    void write(const ops::SoftmaxCrossEntropy&) {}
    void write(const ops::Convolution& op) {
        place(fmt::format("Conv2d({}, {}, {}, stride={}, padding={}, bias=False)", op.input[3],
                          op.filters, op.kernel, op.stride, op.padding));
    }
    void write(const ops::BatchNorm& op) {
        ensure(!op.add && !op.relu && !op.frozen, "{} is not a plain BatchNorm", node_->name);
        place(fmt::format("BatchNorm2d({}, eps={}, momentum={})", op.input[3], op.epsilon,
                          op.momentum));
    }
    void write(const ops::Relu&) { call(fmt::format("functional.relu({})", input())); }
    void write(const ops::Add&) { call(fmt::format("{} + {}", input(0), input(1))); }
    void write(const ops::MaxPool& op) {
        call(fmt::format("functional.max_pool2d({}, {}, stride={}, padding={})", input(), op.kernel,
                         op.stride, op.padding));
    }
    void write(const ops::GlobalAveragePool&) { call(fmt::format("{}.mean((2, 3))", input())); }
    void write(const ops::Linear& op) {
        ensure(!op.relu, "{} has a ReLU", node_->name);
        place(fmt::format("Linear({}, {})", op.input[1], op.features));
    }
    template <typename Operation>
    void write(const Operation& op) {
        throw Error(ExitCode::internal, "no layer of PyTorch for a " + ops::name_of(op));
    }

    const graph::Graph& graph_;
    const graph::Node* node_ = nullptr;  // the one that is written
    std::vector<std::string> names_;     // [value]
    std::string layers_;
    std::string calls_;
};

}  // namespace

std::string pytorch_network(const graph::Graph& graph) {
    return NetworkText(graph).text();
}

}  // namespace hpcai::results
