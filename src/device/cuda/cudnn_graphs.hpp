// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "context.hpp"

namespace hpcai::device::cuda {

/// A convolution in the terms of cuDNN: x (images, height, width, channels), w (filters, kernel,
/// kernel_width(), channels), y (images, output_height, output_width, filters), all of `dtype` and
/// packed. Products are summed in fp32.
struct ConvolutionShape {
    std::int64_t images = 0;
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::int64_t channels = 0;
    std::int64_t filters = 0;
    std::int64_t kernel = 1;
    std::int64_t stride = 1;
    std::int64_t padding = 0;
    bool is_column = false;  // filters have one column, and the width has no padding
    DType dtype = DType::f32;
    bool tf32 = false;  // f32 operands may lose 13 bits; false for f16 and bf16

    std::int64_t kernel_width() const { return is_column ? 1 : kernel; }
    std::int64_t width_padding() const { return is_column ? 0 : padding; }

    std::int64_t output_height() const { return (height + 2 * padding - kernel) / stride + 1; }
    std::int64_t output_width() const {
        return (width + 2 * width_padding() - kernel_width()) / stride + 1;
    }
};

/// Whether a convolution reads its image in blocks of 2 x 2 pixels (kernels::BlockedImages). This
/// replaces stride 2 by 1 and multiplies the channels by 4, which on an H200 makes first layers of
/// 3 and 16 channels faster. If the blocks that one row of a filter reads have at most 64 channels
/// in total, they are stored as one pixel and filters have one column. Conditions: f16 or bf16;
/// stride 2; an image of even sides with 4, 8, 12 or 16 stored channels, without gradient; an odd
/// padding p and a kernel of 2 p + 1 taps per side. Pixels must be finite, because
/// filters in blocks have additional taps, which are 0.
bool reads_blocks(const ops::Convolution& op, const KernelOptions& options);

/// The shape of an operation, with the stored numbers of channels and filters. If it reads blocks,
/// a pixel of the shape is a block or, with is_column, several adjacent blocks.
ConvolutionShape convolution_shape(const ops::Convolution& op, const KernelOptions& options);

/// Returns one line such as "256x56x56x64 filters=128 kernel=3 stride=2 padding=1 fp16". Different
/// shapes give different lines.
std::string to_string(const ConvolutionShape& shape);

/// What a cuDNN graph computes.
enum class ConvolutionPass {
    forward,                  // y
    forward_with_statistics,  // y; sums of y and of y^2 for each filter
    input_gradient,           // dx
    weight_gradient,          // dw
};
inline constexpr int kConvolutionPasses = 4;

std::string_view name_of(ConvolutionPass pass);

/// The operands of a cuDNN graph, in the type of the shape unless stated.
enum class Operand {
    image,       // x or dx (N, H, W, C)
    filters,     // w (K, R, S, C)
    output,      // y or dy (N, P, Q, K)
    gradient,    // dw (K, R, S, C); cuDNN cannot write f32 if the shape has f16 or bf16
    sum,         // (K) f32, of y
    square_sum,  // (K) f32, of y^2
};
inline constexpr int kOperands = 6;

/// An address for each operand of a cuDNN graph, aligned to 16 bytes; null for absent ones.
class Operands {
public:
    void*& operator[](Operand operand) { return data_[static_cast<std::size_t>(operand)]; }
    void* operator[](Operand operand) const { return data_[static_cast<std::size_t>(operand)]; }

private:
    std::array<void*, kOperands> data_{};
};

/// The plans (implementations) that cuDNN lists for one graph, in the order of its heuristics.
/// Only finalize() shows whether a plan works. Plans for f32 without tf32 keep all 24 bits of their
/// operands; plans of a deterministic context are bitwise repeatable.
class ConvolutionPlans {
public:
    /// quick: cuDNN's heuristic A, then its fallback plans. all: also heuristic B, which lists
    /// hundreds of plans.
    enum class Search { quick, all };

    /// Throws Error(internal) when cuDNN has no plan for this graph.
    ConvolutionPlans(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context,
                     Search search);
    ~ConvolutionPlans();

    int count() const;
    /// cuDNN's name, such as "ConvFwd_eng0_k2=10_k24=3", with the same meaning in all processes
    /// with this version of cuDNN.
    std::string name(int plan) const;
    /// Compiles a plan. False when it is excluded or does not support the graph. Can take seconds.
    bool finalize(int plan);
    /// Bytes of the workspace of a finalized plan.
    std::size_t workspace_bytes(int plan) const;
    /// Enqueues a finalized plan on the stream of the context's handle. `workspace` has
    /// workspace_bytes(), aligned to 256 bytes.
    void execute(int plan, const Operands& operands, void* workspace) const;

private:
    struct Graph;
    std::unique_ptr<Graph> graph_;
};

}  // namespace hpcai::device::cuda
