// SPDX-License-Identifier: Apache-2.0
// The parts of cuDNN that the engine uses, as plain loops on the CPU: its handle and, in place of
// src/device/cuda/cudnn_graphs.cpp, the plans of convolutions.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include <hpcai/base/error.hpp>

#include "kernels/host_numbers.hpp"

#include "device/cuda/cudnn_choice.hpp"
#include "simt/libraries.hpp"
#include "simt/numbers.hpp"
#include "simt/streams.hpp"

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

/// The kinds of plans that the engine must distinguish.
enum class Quality { rejects, wants_too_much, runs, runs_without_workspace };
/// As in cuDNN, the first plans may be excluded and the next may need gigabytes.
constexpr int kRejecting = 13, kQuick = kRejecting + 2, kAll = kQuick + 2;
constexpr std::size_t kWorkspaceBytes = 768, kTooManyBytes = (std::size_t{1} << 30) + 1;

Quality quality_of(int plan) {
    if (plan < kRejecting) return Quality::rejects;
    constexpr std::array kOthers{Quality::wants_too_much, Quality::runs, Quality::runs,
                                 Quality::runs_without_workspace};
    return kOthers.at(static_cast<std::size_t>(plan - kRejecting));
}

std::optional<ConvolutionPass>& failing_pass() {
    static std::optional<ConvolutionPass> pass;
    return pass;
}

simt::BadPlans& bad_plans() {
    static simt::BadPlans plans;
    return plans;
}

/// Calls body(index in x, index in w, index in y) for every product of a convolution.
template <typename Body>
void for_each_product(const ConvolutionShape& s, const Body& body) {
    const std::int64_t height = s.output_height(), width = s.output_width();
    for (std::int64_t y = 0; y < s.images * height * width; ++y) {
        const std::int64_t n = y / (height * width), p = y / width % height, q = y % width;
        const std::int64_t taps = s.kernel * s.kernel_width();
        for (std::int64_t tap = 0; tap < taps; ++tap) {
            const std::int64_t row = p * s.stride - s.padding + tap / s.kernel_width();
            const std::int64_t column = q * s.stride - s.width_padding() + tap % s.kernel_width();
            if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
            const std::int64_t x = ((n * s.height + row) * s.width + column) * s.channels;
            for (std::int64_t k = 0; k < s.filters; ++k) {
                const std::int64_t w = (k * taps + tap) * s.channels;
                for (std::int64_t c = 0; c < s.channels; ++c) {
                    body(static_cast<std::size_t>(x + c), static_cast<std::size_t>(w + c),
                         static_cast<std::size_t>(y * s.filters + k));
                }
            }
        }
    }
}

/// One pass on the memory of the operands, as in the documents that cudnn_graphs.cpp names. Tensors
/// without memory are fp64. Statistics use the stored values.
class Convolution {
public:
    /// A `factor` other than 1 makes the results wrong.
    Convolution(const ConvolutionShape& shape, P pass, const Operands& operands, double factor)
        : s_(shape), pass_(pass), at_(operands), factor_(factor) {}

    void run() const {
        switch (pass_) {
            case P::forward:
            case P::forward_with_statistics:
                forward();
                break;
            case P::weight_gradient:
                weight_gradient();
                break;
            case P::input_gradient:
                input_gradient();
                break;
        }
    }

private:
    void forward() const {
        Numbers y(elements(O::output));
        const Numbers x = factors(O::image), w = factors(O::filters);
        for_each_product(s_, [&](auto i, auto j, auto k) { y[k] += x[i] * w[j]; });
        write(O::output, y);
        if (pass_ == P::forward) return;
        const auto filters = static_cast<std::size_t>(s_.filters);
        const Numbers stored = read(O::output);
        Numbers sum(filters), square_sum(filters);
        for (std::size_t i = 0; i < stored.size(); ++i) {
            sum[i % filters] += stored[i];
            square_sum[i % filters] += stored[i] * stored[i];
        }
        write(O::sum, sum);
        write(O::square_sum, square_sum);
    }

    void weight_gradient() const {
        Numbers dw(elements(O::gradient));
        const Numbers x = factors(O::image), dy = factors(O::output);
        for_each_product(s_, [&](auto i, auto j, auto k) { dw[j] += x[i] * dy[k]; });
        write(O::gradient, dw);
    }

    void input_gradient() const {
        Numbers dx(elements(O::image));
        const Numbers w = factors(O::filters), dy = factors(O::output);
        for_each_product(s_, [&](auto i, auto j, auto k) { dx[i] += w[j] * dy[k]; });
        write(O::image, dx);
    }

    DType type(Operand operand) const { return type_of(operand, s_.dtype); }
    std::size_t elements(Operand operand) const {
        return bytes_of(operand, s_) / size_of(type(operand));
    }
    Numbers read(Operand operand, bool tf32 = false) const {
        return simt::read_numbers(type(operand), at_[operand], elements(operand), tf32);
    }
    /// Returns an operand as tensor cores multiply it.
    Numbers factors(Operand operand) const { return read(operand, s_.tf32); }
    void write(Operand operand, const Numbers& numbers) const {
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            kernels::reference::put(type(operand), at_[operand], static_cast<std::int64_t>(i),
                                    factor_ * numbers[i]);
        }
    }

    const ConvolutionShape& s_;
    P pass_;
    const Operands& at_;
    double factor_;
};

}  // namespace

struct ConvolutionPlans::Graph {
    ConvolutionShape shape;
    P pass;
    cudnnHandle_t handle;
    int plans;
    std::array<bool, kAll> finalized{}, has_run{};
};

ConvolutionPlans::ConvolutionPlans(const ConvolutionShape& shape, ConvolutionPass pass,
                                   const Context& context, Search search)
    : graph_(new Graph{shape, pass, context.cudnn, search == Search::quick ? kQuick : kAll}) {
    ensure(context.has_device(), "the CPU stands in for a device, not for a description");
}

ConvolutionPlans::~ConvolutionPlans() = default;

int ConvolutionPlans::count() const {
    return graph_->plans;
}

std::string ConvolutionPlans::name(int plan) const {
    return "loops" + std::to_string(plan);
}

bool ConvolutionPlans::finalize(int plan) {
    const auto index = static_cast<std::size_t>(plan);
    if (plan == bad_plans().bulky) std::this_thread::sleep_for(std::chrono::milliseconds(600));
    return graph_->finalized.at(index) = quality_of(plan) != Quality::rejects;
}

std::size_t ConvolutionPlans::workspace_bytes(int plan) const {
    const auto index = static_cast<std::size_t>(plan);
    ensure(graph_->finalized.at(index), "plan {} was not finalized", plan);
    if (quality_of(plan) == Quality::wants_too_much) return kTooManyBytes;
    return quality_of(plan) == Quality::runs_without_workspace ? 0 : kWorkspaceBytes;
}

void ConvolutionPlans::execute(int plan, const Operands& operands, void* workspace) const {
    const std::size_t scratch = workspace_bytes(plan);
    const cudaStream_t stream = graph_->handle->stream;
    const simt::BadPlans bad = bad_plans();
    ensure(scratch < kTooManyBytes && graph_->pass != failing_pass(), "plan {} fails", plan);
    ensure(scratch == 0 || simt::is_aligned(workspace, 256), "a workspace is not aligned");
    for (int operand = 0; operand < kOperands; ++operand) {
        ensure(simt::is_aligned(operands[static_cast<Operand>(operand)], 16),
               "an operand is not aligned");
    }
    // In its first run, the real library may load kernels and allocate.
    ensure(graph_->has_run[static_cast<std::size_t>(plan)] || !simt::is_captured(stream),
           "plan {} is recorded before it has ever run", plan);
    graph_->has_run[static_cast<std::size_t>(plan)] = true;
    simt::enqueue(stream, [=, shape = graph_->shape, pass = graph_->pass] {
        if (scratch > 0) std::memset(workspace, 0xee, scratch);  // the previous content is lost
        ensure(plan != bad.fatal, "plan {} reads an invalid address", plan);
        if (plan == bad.slow) simt::pretend(1);
        Convolution(shape, pass, operands, plan == bad.wrong ? 1.01 : 1).run();
    });
}

}  // namespace hpcai::device::cuda

namespace hpcai::simt {

void let_fail(std::optional<device::cuda::ConvolutionPass> pass) {
    device::cuda::failing_pass() = pass;
}

void set_bad_plans(const BadPlans& plans) {
    device::cuda::bad_plans() = plans;
}

}  // namespace hpcai::simt
