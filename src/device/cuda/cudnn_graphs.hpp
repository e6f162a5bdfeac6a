// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "context.hpp"

namespace hpcai::device::cuda {

/// A convolution as cuDNN is asked for it: x (images, height, width, channels),
/// w (filters, kernel, kernel, channels), y (images, output_height, output_width, filters), all
/// of `dtype`, packed. Products are summed in fp32.
struct ConvolutionShape {
    std::int64_t images = 0;
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::int64_t channels = 0;
    std::int64_t filters = 0;
    std::int64_t kernel = 1;
    std::int64_t stride = 1;
    std::int64_t padding = 0;
    DType dtype = DType::f32;
    bool tf32 = false;  // f32 factors may lose 13 bits; without effect for half types

    std::int64_t output_height() const { return (height + 2 * padding - kernel) / stride + 1; }
    std::int64_t output_width() const { return (width + 2 * padding - kernel) / stride + 1; }
    bool operator==(const ConvolutionShape&) const = default;
};

/// The shape of an operation, channels and filters as they are stored.
ConvolutionShape convolution_shape(const ops::Convolution& op, const KernelOptions& options);

/// "256x56x56x64 filters=128 kernel=3 stride=2 padding=1 fp16": one line, the same for equal
/// shapes only.
std::string to_string(const ConvolutionShape& shape);

/// What a graph computes. Normalized means that the image is read as max(scale x + shift, 0), with
/// (channels) factors of the image's type, as BatchNorm and ReLU before the convolution have it.
enum class ConvolutionPass {
    forward,                             // y
    forward_with_statistics,             // y; sums of y and of y^2 for each filter
    normalized_forward_with_statistics,  // the same from a normalized image
    input_gradient,                      // dx
    input_gradient_with_norm,    // dx through the ReLU and into the sums of the BatchNorm before
    weight_gradient,             // dw
    normalized_weight_gradient,  // the same from a normalized image
};
inline constexpr int kConvolutionPasses = 7;

std::string_view name_of(ConvolutionPass pass);

/// What a graph reads and writes, in the type of the shape unless stated.
enum class Operand {
    image,       // x or dx (N, H, W, C)
    filters,     // w (K, R, R, C)
    output,      // y or dy (N, P, Q, K)
    gradient,    // dw (K, R, R, C); cuDNN refuses f32 for half types
    sum,         // (K) f32, of y
    square_sum,  // (K) f32, of y^2
    scale,       // (C); for input_gradient_with_norm gamma, f32
    shift,       // (C); for input_gradient_with_norm beta, f32
    // Of input_gradient_with_norm: the BatchNorm before read `norm_input` (N, H, W, C) and had
    // these (C) f32 statistics. Its input's gradient is
    // factor_dy dx + factor_x norm_input + constant.
    norm_input,
    mean,
    inverse_deviation,
    gamma_gradient,  // (C) f32
    beta_gradient,   // (C) f32
    factor_dy,       // (C) f32
    factor_x,        // (C) f32
    constant,        // (C) f32
};
inline constexpr int kOperands = 16;

/// An address for each operand that the graph has, aligned to 16 bytes.
class Operands {
public:
    void*& operator[](Operand operand) { return at_[static_cast<std::size_t>(operand)]; }
    void* operator[](Operand operand) const { return at_[static_cast<std::size_t>(operand)]; }

private:
    std::array<void*, kOperands> at_{};
};

/// All the plans that cuDNN offers for one graph, best guess first. A plan is not known to work
/// until it is finalized. Plans for f32 without tf32 keep all 24 bits of their factors; those of a
/// deterministic context give the same bits again.
class ConvolutionPlans {
public:
    /// Which of cuDNN's heuristics are asked: A and, behind it, the plans that always work; or B
    /// as well, which are hundreds.
    enum class Search { quick, all };

    /// Throws Error(internal) when cuDNN has no plan for this graph.
    ConvolutionPlans(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context,
                     Search search);
    ~ConvolutionPlans();

    int count() const;
    /// Engine and settings, "ConvFwd_eng0_k2=10_k24=3": means the same to every process that uses
    /// this version of cuDNN.
    std::string name(int plan) const;
    /// False when this plan turns out not to support the graph. Can take seconds.
    bool finalize(int plan);
    /// Of a finalized plan.
    std::size_t workspace_bytes(int plan) const;
    /// Enqueues a finalized plan on the stream of the context's handle. `workspace` has
    /// workspace_bytes() at a multiple of 16.
    void execute(int plan, const Operands& operands, void* workspace) const;

private:
    struct Graph;
    std::unique_ptr<Graph> graph_;
};

}  // namespace hpcai::device::cuda
