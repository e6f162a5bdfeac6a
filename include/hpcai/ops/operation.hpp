// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include <hpcai/ops/detection.hpp>
#include <hpcai/ops/segmentation.hpp>
#include <hpcai/tensor/dtype.hpp>
#include <hpcai/tensor/shape.hpp>

/// What a model is made of: descriptions without device, memory or batch loop. Every description
/// knows the shape of its output and its FLOPs; how it is computed is a device's business.
namespace hpcai::ops {

using tensor::Shape;

/// y = (x / 255 - mean[c]) / standard_deviation[c] of uint8 pixels x (N, H, W, C). Of numbers x,
/// which the data set has normalized, y = x in the type that the network computes in.
struct InputNormalize {
    Shape input;
    std::vector<double> mean;                 // (C), in [0, 1]; pixels only
    std::vector<double> standard_deviation;   // (C), in [0, 1]; pixels only
    tensor::DType dtype = tensor::DType::u8;  // of x: u8, f32, f16 or bf16
};

/// y = conv(x, w) without bias: x (N, H, W, C), w (K, R, R, C), y (N, P, Q, K). With `sums`, y
/// carries the sums of its channels (see carries_sums).
struct Convolution {
    Shape input;
    std::int64_t filters = 0;  // K
    std::int64_t kernel = 1;   // R, pixels a side
    std::int64_t stride = 1;
    std::int64_t padding = 0;  // zeros on each side
    bool sums = false;
};

/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta over (N, H, W) for each channel of
/// x (N, H, W, C); Ioffe and Szegedy 2015, algorithm 1. With `relu`, y = max(y, 0); with `add`, a
/// second input r (N, H, W, C) is added before that. The running statistics take the unbiased
/// variance with weight `momentum`. With `from_sums`, x carries the sums of its channels, from
/// which the statistics of a whole batch in training are taken instead of from x. With `frozen`,
/// mean and variance are the running ones in training too, and nothing of it is trained.
struct BatchNorm {
    Shape input;
    double epsilon = 1e-5;
    double momentum = 0.1;
    // Samples that share statistics in training: a divisor of the batch or, of k ranks that work
    // together on k batches, k times it. 0: the whole batch.
    std::int64_t statistics_samples = 0;
    bool add = false;
    bool relu = false;
    bool from_sums = false;
    bool frozen = false;
};

/// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, the statistics over (H, W) and the
/// C / groups channels of a group for each sample of x (N, H, W, C): Wu and He 2018, equation 7.
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

/// y = x + the enlarged `coarse` z: pixel (i, j) of y (N, H, W, C) adds pixel (i H' / H, j W' / W),
/// rounded down, of z (N, H', W', C). The top-down path of Lin et al. 2017 (FPN), section 3.
struct UpsampleAdd {
    Shape input;
    Shape coarse;
};

/// y = conv(norm(x), w), in training only. Parameters: gamma and beta of `norm`, which has a ReLU
/// and no addition, then the filters. A device need not keep the normalized image.
struct NormConvolution {
    BatchNorm norm;
    Convolution convolution;
};

/// y = outer(x, inner(r)) of x and r, in training only. Parameters: gamma and beta of `outer`,
/// which has an addition and a ReLU, then of `inner`, which has neither. A device need not keep
/// inner(r).
struct DualNorm {
    BatchNorm outer;
    BatchNorm inner;
};

/// y = max(x, 0).
struct Relu {
    Shape input;
};

/// y = a + b.
struct Add {
    Shape input;
};

/// Maximum over kernel x kernel windows of x (N, H, W, C); padding never wins.
struct MaxPool {
    Shape input;
    std::int64_t kernel = 2;
    std::int64_t stride = 2;
    std::int64_t padding = 0;
};

/// Mean over H and W: (N, H, W, C) to (N, C).
struct GlobalAveragePool {
    Shape input;
};

/// y = x w^T + b: x (N, C), w (F, C), b (F), y (N, F), in fp32. With `relu`, y = max(y, 0) in the
/// type that the network computes in.
struct Linear {
    Shape input;
    std::int64_t features = 0;  // F
    bool relu = false;
};

/// Loss of logits x (N, F) against labels (N): cross-entropy with the target distribution
/// (1 - s) onehot + s / F (Szegedy et al. 2016, section 7). Rows with label -1 are padding: no
/// loss, no gradient. Output: the softmax (N, F) in fp32.
struct SoftmaxCrossEntropy {
    Shape input;
    double label_smoothing = 0;  // s
};

/// Channels of a value that are some of its own.
struct ChannelRange {
    std::int64_t first = 0;
    std::int64_t count = 0;
};

/// Those that part `part` of `parts` has: from channels x part / parts, rounded down, to before
/// those of the next part.
ChannelRange channel_range(std::int64_t channels, int parts, int part);

/// y (..., C) of which each of `parts` networks that compute at the same time has some channels,
/// this one x. The gradient of x is this part's channels of that of y: of the sum over the parts
/// where each has a term of it, and as it is where all have the same.
struct AllGather {
    Shape input;  // of x
    std::int64_t channels = 0;
    int parts = 1;
    int part = 0;
    bool sums_gradients = true;
    std::optional<tensor::DType> dtype;  // of x and y; absent: what the network computes in
};

/// This part's channels of the sum of x (..., C) over `parts` networks that compute at the same
/// time, in fp32 and in their order. The gradient of x has the channels of all parts.
struct ReduceScatter {
    Shape input;  // of x
    int parts = 1;
    int part = 0;
};

using Operation =
    std::variant<InputNormalize, Convolution, BatchNorm, NormConvolution, DualNorm, GroupNorm, Bias,
                 UpsampleAdd, Relu, Add, MaxPool, GlobalAveragePool, Linear, SoftmaxCrossEntropy,
                 AnchorTargets, RpnLoss, Proposals, RoiTargets, RoiAlign, RoiLoss, Detections,
                 CellCrossEntropy, AllGather, ReduceScatter>;

/// The shape of the operation's output. Throws Error(internal) when the input's rank or extents
/// do not fit, for example an image smaller than the kernel.
Shape output_shape(const Operation& operation);

/// The type of the output where that is not the one that the network computes in.
std::optional<tensor::DType> output_dtype(const Operation& operation);

/// Whether gradients pass from the output to the inputs.
bool is_differentiable(const Operation& operation);

/// Whether it computes losses, from which gradients start.
bool is_loss(const Operation& operation);

/// Whether such an operation's output is a softmax, beside which its losses are kept.
bool gives_softmax(const Operation& operation);

/// The shapes of all that the operation reads, in order.
std::vector<Shape> input_shapes(const Operation& operation);

/// Whether the output carries the sums of its channels: behind its elements lie, for K channels,
/// the K sums of y and then the K sums of y^2 over the batch, in fp32.
bool carries_sums(const Operation& operation);

/// "convolution", "batch_norm_relu", ...
std::string_view name_of(const Operation& operation);

}  // namespace hpcai::ops
