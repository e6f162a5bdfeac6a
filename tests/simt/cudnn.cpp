// SPDX-License-Identifier: Apache-2.0
// cuDNN, as far as the engine uses it, by plain loops on the CPU: its handle, and in place of
// src/device/cuda/cudnn_graphs.cpp the plans of convolutions.
#include <array>
#include <cstring>
#include <vector>

#include <hpcai/base/error.hpp>

#include "kernels/host_numbers.hpp"

#include "simt/numbers.hpp"
#include "simt/streams.hpp"
#include "src/device/cuda/cudnn_graphs.hpp"

struct cudnnContext {
    cudaStream_t stream = nullptr;
};

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
    *handle = new cudnnContext;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}
std::size_t cudnnGetVersion() {
    return CUDNN_VERSION;
}
const char* cudnnGetErrorString(cudnnStatus_t) {
    return "an error";
}

namespace hpcai::device::cuda {
namespace {

using simt::Numbers;
using O = Operand;
using P = ConvolutionPass;

/// What a plan is good for; the engine has to find out.
enum class Quality { refuses, right, wrong, right_without_workspace };
constexpr std::array kQualities{Quality::refuses, Quality::right, Quality::wrong,
                                Quality::right_without_workspace};
constexpr std::size_t kWorkspaceBytes = 768;

/// Calls body(index in x, index in w, index in y) for every product of a convolution.
template <typename Body>
void for_each_product(const ConvolutionShape& s, const Body& body) {
    const std::int64_t height = s.output_height(), width = s.output_width();
    for (std::int64_t y = 0; y < s.images * height * width; ++y) {
        const std::int64_t n = y / (height * width), p = y / width % height, q = y % width;
        for (std::int64_t tap = 0; tap < s.kernel * s.kernel; ++tap) {
            const std::int64_t row = p * s.stride - s.padding + tap / s.kernel;
            const std::int64_t column = q * s.stride - s.padding + tap % s.kernel;
            if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
            const std::int64_t x = ((n * s.height + row) * s.width + column) * s.channels;
            for (std::int64_t k = 0; k < s.filters; ++k) {
                const std::int64_t w = (k * s.kernel * s.kernel + tap) * s.channels;
                for (std::int64_t c = 0; c < s.channels; ++c) {
                    body(static_cast<std::size_t>(x + c), static_cast<std::size_t>(w + c),
                         static_cast<std::size_t>(y * s.filters + k));
                }
            }
        }
    }
}

/// One pass on the operands' memory.
class Convolution {
public:
    Convolution(const ConvolutionShape& shape, const Operands& operands)
        : s_(shape), at_(operands) {}

    /// Every result is too large by a hundredth part where it is to be wrong.
    void run(P pass, bool wrong) const {
        const double factor = wrong ? 1.01 : 1;
        if (pass == P::forward) {
            Numbers y(elements(O::output));
            const Numbers x = read(O::image), w = read(O::filters);
            for_each_product(s_, [&](auto i, auto j, auto k) { y[k] += x[i] * w[j]; });
            write(O::output, y, factor);
        } else if (pass == P::weight_gradient) {
            Numbers dw(elements(O::gradient));
            const Numbers x = read(O::image), dy = read(O::output);
            for_each_product(s_, [&](auto i, auto j, auto k) { dw[j] += x[i] * dy[k]; });
            write(O::gradient, dw, factor);
        } else {
            Numbers dx(elements(O::image));
            const Numbers w = read(O::filters), dy = read(O::output);
            for_each_product(s_, [&](auto i, auto j, auto k) { dx[i] += w[j] * dy[k]; });
            write(O::image, dx, factor);
        }
    }

private:
    std::size_t elements(Operand operand) const {
        const std::int64_t image = s_.images * s_.height * s_.width * s_.channels;
        const std::int64_t filters = s_.filters * s_.kernel * s_.kernel * s_.channels;
        const std::int64_t output = s_.images * s_.output_height() * s_.output_width() * s_.filters;
        return static_cast<std::size_t>(operand == O::image    ? image
                                        : operand == O::output ? output
                                                               : filters);
    }
    Numbers read(Operand operand) const {
        return simt::read_numbers(s_.dtype, at_[operand], elements(operand), s_.tf32);
    }
    void write(Operand operand, const Numbers& numbers, double factor) const {
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            kernels::reference::put(s_.dtype, at_[operand], static_cast<std::int64_t>(i),
                                    factor * numbers[i]);
        }
    }

    const ConvolutionShape& s_;
    const Operands& at_;
};

}  // namespace

struct ConvolutionPlans::Graph {
    ConvolutionShape shape;
    P pass;
    cudnnHandle_t handle;
    int plans;
    std::array<bool, kQualities.size()> finalized{};
};

ConvolutionPlans::ConvolutionPlans(const ConvolutionShape& shape, ConvolutionPass pass,
                                   const Context& context, Search search)
    : graph_(new Graph{shape, pass, context.cudnn, search == Search::quick ? 2 : 4}) {
    ensure(pass == P::forward || pass == P::weight_gradient || pass == P::input_gradient,
           "no loops for {}", name_of(pass));
    ensure(context.has_device(), "the CPU stands in for a device, not for a description");
}

ConvolutionPlans::~ConvolutionPlans() = default;
ConvolutionPlans::ConvolutionPlans(ConvolutionPlans&&) noexcept = default;
ConvolutionPlans& ConvolutionPlans::operator=(ConvolutionPlans&&) noexcept = default;

int ConvolutionPlans::count() const {
    return graph_->plans;
}

std::string ConvolutionPlans::name(int plan) const {
    return "loops" + std::to_string(plan);
}

bool ConvolutionPlans::finalize(int plan) {
    const auto index = static_cast<std::size_t>(plan);
    return graph_->finalized.at(index) = kQualities.at(index) != Quality::refuses;
}

int ConvolutionPlans::first_finalized() {
    for (int plan = 0; plan < count(); ++plan) {
        if (finalize(plan)) return plan;
    }
    return -1;
}

std::size_t ConvolutionPlans::workspace_bytes(int plan) const {
    const auto index = static_cast<std::size_t>(plan);
    ensure(graph_->finalized.at(index), "plan {} was not finalized", plan);
    return kQualities[index] == Quality::right_without_workspace ? 0 : kWorkspaceBytes;
}

void ConvolutionPlans::execute(int plan, const Operands& operands, void* workspace) const {
    const std::size_t scratch = workspace_bytes(plan);
    const bool wrong = kQualities[static_cast<std::size_t>(plan)] == Quality::wrong;
    ensure(scratch == 0 || simt::is_aligned(workspace, 256), "a workspace is not aligned");
    for (int operand = 0; operand < kOperands; ++operand) {
        ensure(simt::is_aligned(operands[static_cast<Operand>(operand)], 16),
               "an operand is not aligned");
    }
    simt::enqueue(graph_->handle->stream, [=, shape = graph_->shape, pass = graph_->pass] {
        if (scratch > 0) std::memset(workspace, 0xee, scratch);  // what lay there is lost
        Convolution(shape, operands).run(pass, wrong);
    });
}

}  // namespace hpcai::device::cuda
