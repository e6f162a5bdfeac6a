// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <type_traits>
#include <variant>

#include <hpcai/ops/detection.hpp>
#include <hpcai/tensor/dtype.hpp>

/// Descriptions of model operations, independent of devices and memory. The output's shape and the
/// FLOPs follow from a description; a device chooses the implementation.
namespace hpcai::ops {

/// The passes of an operation in a training step.
enum class Pass {
    prepare,          // working copies of the parameters from their fp32 masters
    forward,          // output from inputs
    weight_gradient,  // parameter gradients from the output gradient: Convolution and Linear
    input_gradient,   // input gradients, and parameter gradients of the other operations
};

constexpr std::string_view name_of(Pass pass) {
    constexpr std::array kNames{"prepare", "forward", "weight_gradient", "input_gradient"};
    return kNames.at(static_cast<std::size_t>(pass));
}

using tensor::Shape;

/// y = (x / 255 - mean[c]) / standard_deviation[c] for uint8 pixels x (N, H, W, C). Images of other
/// types are already normalized: y = x in the compute type.
struct InputNormalize {
    Shape input;
    std::vector<double> mean;                 // (C), in [0, 1]; uint8 only
    std::vector<double> standard_deviation;   // (C), in (0, 1]; uint8 only
    tensor::DType dtype = tensor::DType::u8;  // of x: u8, f32, f16 or bf16
};

/// y = conv(x, w) without bias: x (N, H, W, C), w (K, R, R, C), y (N, P, Q, K). With `sums`,
/// per-channel sums are stored after the elements of y (see outputs_channel_sums).
struct Convolution {
    Shape input;
    std::int64_t filters = 0;  // K
    std::int64_t kernel = 1;   // R, pixels per side
    std::int64_t stride = 1;
    std::int64_t padding = 0;  // zeros on each side
    bool sums = false;
};

/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, with statistics over (N, H, W) for
/// each channel of x (N, H, W, C); Ioffe and Szegedy 2015, algorithm 1. With `add`, a second input
/// r (N, H, W, C) is added; with `relu`, a ReLU follows. In training, the samples of a span (see
/// statistics_samples) share statistics. The running statistics move by `momentum` towards the mean
/// of the spans' statistics, with unbiased variance. With `from_sums`, training computes the
/// statistics from the channel sums that are stored after the elements of x. With `frozen`,
/// training uses the running statistics, like inference, and does not change them, gamma or beta.
struct BatchNorm {
    Shape input;
    double epsilon = 1e-5;
    double momentum = 0.1;
    // Number of samples in a span: a divisor of the rank's batch, or k times that batch if k ranks
    // share statistics. 0: the rank's batch is one span.
    std::int64_t statistics_samples = 0;
    bool add = false;
    bool relu = false;
    bool from_sums = false;
    bool frozen = false;
};

/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta for x (N, H, W, C): Wu and He 2018,
/// equation 7. Each sample has statistics for each group of C / groups channels, over H and W.
struct GroupNorm {
    Shape input;
    std::int64_t groups = 32;
    double epsilon = 1e-5;
    bool relu = false;
};

/// y = x + b for each channel of x (N, H, W, C); with `relu`, y = max(x + b, 0).
struct Bias {
    Shape input;
    bool relu = false;
};

/// y = x + the upsampled `coarse` image z (N, H', W', C): pixel (i, j) of x (N, H, W, C) plus pixel
/// (floor(i * H' / H), floor(j * W' / W)) of z. Lin et al. 2017 (FPN), section 3.
struct UpsampleAdd {
    Shape input;
    Shape coarse;
};

/// y = outer(x, inner(r)), in training only. Parameters: gamma and beta of `outer`, which has an
/// addition and a ReLU, then gamma and beta of `inner`, which has neither. A device need not store
/// inner(r).
struct DualNorm {
    BatchNorm outer;
    BatchNorm inner;
};

/// y = norm(convolution(x), r), in training only. Parameters: the filters, 1 x 1 with stride 1,
/// then gamma and beta of `norm`, which has an addition and a ReLU, or neither. A device need not
/// store convolution(x).
struct PointwiseNorm {
    Convolution convolution;
    BatchNorm norm;
};

/// y = max(x, 0).
struct Relu {
    Shape input;
};

/// y = a + b.
struct Add {
    Shape input;
};

/// Maximum over kernel x kernel windows of x (N, H, W, C), without the padding pixels.
struct MaxPool {
    Shape input;
    std::int64_t kernel = 2;
    std::int64_t stride = 2;
    std::int64_t padding = 0;
};

/// y = max_pool(norm(x)), in training only. Parameters: gamma and beta of `norm`, which has a ReLU
/// and no addition. A device need not store norm(x).
struct NormPool {
    BatchNorm norm;
    MaxPool pool;
};

/// Mean over H and W: (N, H, W, C) to (N, C).
struct GlobalAveragePool {
    Shape input;
};

/// y = x w^T + b: x (N, C), w (F, C), b (F), y (N, F) in fp32. With `relu`, y = max(x w^T + b, 0)
/// in the compute type.
struct Linear {
    Shape input;
    std::int64_t features = 0;  // F
    bool relu = false;
};

/// Loss of logits x (N, F) for labels (N) s32: cross-entropy with the target distribution
/// (1 - s) * onehot + s / F (Szegedy et al. 2016, section 7). Rows with label -1 are padding: their
/// loss and gradient are 0. Output: the softmax (N, F) in fp32; KernelTensors::saved receives the
/// losses (N) in fp32.
struct SoftmaxCrossEntropy {
    Shape input;
    double label_smoothing = 0;  // s
};

/// Loss that compares the logits x (N, H, W, K) of cells with classes derived from boxes (N, G, 5).
/// The smallest box that covers a cell's centre determines the class of the cell (cell_class()). An
/// image's loss is the sum of its cells' weighted cross-entropies, divided by H x W. The weight is
/// `background_weight` for class 0, else 1. Output: the softmax (N, H * W, K) in fp32.
struct CellCrossEntropy {
    Shape input;              // of x
    Shape boxes;              // x1, y1, x2, y2 in pixels, class; class 0: no box
    std::int64_t stride = 8;  // pixels per side of a cell
    double background_weight = 1;
};

/// A range of the channels of a value.
struct ChannelRange {
    std::int64_t first = 0;
    std::int64_t count = 0;
};

/// Returns the channels of shard number `shard`: from channels x shard / shards, rounded down, to
/// the start of the next shard. Throws Error(internal) for fewer channels than shards.
ChannelRange channel_range(std::int64_t channels, int shards, int shard);

/// An all-gather over the shards of a network: x has the channels of this shard, and y (..., C) the
/// channels of all shards. The gradient of x is the part of the gradient of y with this shard's
/// channels. With `sums_gradients`, the gradient of y is first summed over the shards; otherwise
/// it is already the same on all shards.
struct AllGather {
    Shape input;                // of x
    std::int64_t channels = 0;  // C, of all shards
    int shards = 1;
    int shard = 0;  // index of this shard
    bool sums_gradients = true;
    std::optional<tensor::DType> dtype;  // of x and y; absent: the compute type
};

/// A reduce-scatter: sums x (..., C) over the shards of a network, in fp32 and in the order of the
/// shards; y has the channels of this shard. The gradient of x is gathered from all shards.
struct ReduceScatter {
    Shape input;  // of x
    int shards = 1;
    int shard = 0;  // index of this shard
};

using Operation =
    std::variant<InputNormalize, Convolution, BatchNorm, DualNorm, PointwiseNorm, GroupNorm, Bias,
                 UpsampleAdd, Relu, Add, MaxPool, NormPool, GlobalAveragePool, Linear,
                 SoftmaxCrossEntropy, AnchorTargets, RpnLoss, Proposals, RoiTargets, RoiAlign,
                 RoiLoss, Detections, CellCrossEntropy, AllGather, ReduceScatter>;

/// Whether `Op` is one of `Listed`.
template <typename Op, typename... Listed>
concept OneOf = (std::is_same_v<Op, Listed> || ...);

template <typename... Listed>
bool is_one_of(const Operation& operation) {
    return (std::holds_alternative<Listed>(operation) || ...);
}

/// Returns the shape of the output. Throws Error(internal) for an invalid description, for example
/// an image smaller than the kernel.
Shape output_shape(const Operation& operation);

/// Returns the type of the output; nothing if the output has the compute type.
std::optional<tensor::DType> output_dtype(const Operation& operation);

/// Returns whether the inputs have gradients; false if the operation samples or selects boxes.
bool is_differentiable(const Operation& operation);

/// Returns whether this is a loss. The backward pass of a loss reads no output gradient.
bool is_loss(const Operation& operation);

/// Returns whether this is a loss whose output is a softmax. Its losses (N) are in
/// KernelTensors::saved.
bool outputs_softmax(const Operation& operation);

/// Returns the shapes of all inputs, in order.
std::vector<Shape> input_shapes(const Operation& operation);

/// Returns whether per-channel sums are stored after the elements of the output y: first the sums
/// of y, then the sums of y^2 over (N, P, Q), in fp32, one for each of the K channels.
bool outputs_channel_sums(const Operation& operation);

/// Returns whether precision int8 computes this pass of a convolution in int8, on every device that
/// has int8. Forward: at least 32 input channels, input and output channels in multiples of 16, and
/// at most 2^16 terms per result, so that 32 bits hold their sum. These limits exclude the first
/// convolution of a network and small heads. Input gradient: additionally stride 1, padding below
/// the kernel size and at most 2^16 terms per result of this pass. The weight gradient is never
/// computed in int8.
bool computes_in_int8(const Convolution& op, Pass pass);

/// What a backward pass reads in addition to parameters and KernelTensors::saved.
struct BackwardReads {
    bool inputs = false;
    bool output = false;
    std::size_t output_gradients = 1;  // maximum number of tensors whose sum is y's gradient
};
BackwardReads backward_reads(const Operation& operation);

/// Returns a name such as "convolution" or "batch_norm_relu".
std::string name_of(const Operation& operation);

}  // namespace hpcai::ops
