// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>
#include <hpcai/ops/operation.hpp>

namespace hpcai::ops {
namespace {

void ensure_image(const Shape& input) {
    ensure(input.rank() == 4, "expected (N, H, W, C), got {}", to_string(input));
}

/// Returns (N, P, Q, C): the window of a convolution or pooling has P x Q positions in an image.
Shape window_positions(const auto& op) {
    ensure_image(op.input);
    ensure(op.kernel > 0 && op.stride > 0 && op.padding >= 0,
           "invalid window of {} with stride {} and padding {}", op.kernel, op.stride, op.padding);
    Shape positions = op.input;
    for (const std::size_t axis : {1, 2}) {
        const std::int64_t slack = op.input[axis] + 2 * op.padding - op.kernel;
        ensure(slack >= 0, "a window of {} does not fit an extent of {} with padding {}", op.kernel,
               op.input[axis], op.padding);
        positions[axis] = slack / op.stride + 1;
    }
    return positions;
}

/// Returns `shape` with its last extent replaced by `channels`.
Shape with_channels(Shape shape, std::int64_t channels) {
    shape[shape.rank() - 1] = channels;
    return shape;
}

void ensure_boxes(const Shape& shape, std::int64_t columns) {
    ensure(shape.rank() == 3 && shape[2] == columns, "expected (N, R, {}), got {}", columns,
           to_string(shape));
}

struct OutputShape {
    Shape operator()(const OneOf<InputNormalize, Bias> auto& op) const {
        ensure_image(op.input);
        return op.input;
    }
    Shape operator()(const OneOf<Relu, Add> auto& op) const { return op.input; }
    Shape operator()(const Convolution& op) const {
        const Shape windows = window_positions(op);
        ensure(op.filters > 0, "a convolution needs filters, got {}", op.filters);
        return with_channels(windows, op.filters);
    }
    Shape operator()(const BatchNorm& op) const {
        ensure_image(op.input);
        const std::int64_t batch = op.input[0], span = op.statistics_samples;
        ensure(span == 0 || (span > 0 && (batch % span == 0 || span % batch == 0)),
               "statistics over {} samples do not fit a batch of {}", span, batch);
        return op.input;
    }
    Shape operator()(const DualNorm& op) const {
        ensure((*this)(op.outer) == (*this)(op.inner), "norms of {} and {} cannot be added",
               to_string(op.outer.input), to_string(op.inner.input));
        return op.outer.input;
    }
    Shape operator()(const PointwiseNorm& op) const {
        ensure((*this)(op.convolution) == (*this)(op.norm), "a norm of {} cannot follow {}",
               to_string(op.norm.input), to_string((*this)(op.convolution)));
        return op.norm.input;
    }
    Shape operator()(const GroupNorm& op) const {
        ensure_image(op.input);
        ensure(op.groups > 0 && op.input[3] % op.groups == 0, "{} groups do not divide {} channels",
               op.groups, op.input[3]);
        return op.input;
    }
    Shape operator()(const UpsampleAdd& op) const {
        ensure_image(op.input);
        ensure_image(op.coarse);
        ensure(op.input[0] == op.coarse[0] && op.input[3] == op.coarse[3],
               "{} and an upsampled {} cannot be added", to_string(op.input), to_string(op.coarse));
        return op.input;
    }
    Shape operator()(const MaxPool& op) const {
        ensure(op.padding < op.kernel, "the padding must be below the window of {}, got {}",
               op.kernel, op.padding);
        return window_positions(op);
    }
    Shape operator()(const NormPool& op) const {
        ensure((*this)(op.norm) == op.pool.input, "a pooling of {} cannot follow a norm of {}",
               to_string(op.pool.input), to_string(op.norm.input));
        return (*this)(op.pool);
    }
    Shape operator()(const GlobalAveragePool& op) const {
        ensure_image(op.input);
        return {op.input[0], op.input[3]};
    }
    Shape operator()(const Linear& op) const {
        ensure(op.input.rank() == 2, "expected (N, C), got {}", to_string(op.input));
        ensure(op.features > 0, "a linear layer needs features, got {}", op.features);
        return {op.input[0], op.features};
    }
    Shape operator()(const SoftmaxCrossEntropy& op) const {
        ensure(op.input.rank() == 2, "expected (N, F), got {}", to_string(op.input));
        return op.input;
    }
    Shape operator()(const AnchorTargets& op) const {
        ensure_boxes(op.boxes, 5);
        ensure(op.samples > 0 && op.anchors.count() > 0, "cannot draw {} samples from {} anchors",
               op.samples, op.anchors.count());
        return {op.boxes[0], op.samples, 6};
    }
    Shape operator()(const RpnLoss& op) const { return {op.batch, 2}; }
    Shape operator()(const Proposals& op) const {
        ensure(op.per_level > 0 && op.limit > 0, "invalid number of proposals: {}, {} per level",
               op.limit, op.per_level);
        return {op.batch, op.limit, 5};
    }
    Shape operator()(const RoiTargets& op) const {
        ensure_boxes(op.proposals, 5);
        ensure_boxes(op.boxes, 5);
        ensure(op.proposals[0] == op.boxes[0],
               "proposals {} and boxes {} have different numbers of images",
               to_string(op.proposals), to_string(op.boxes));
        return {op.boxes[0], op.samples, 9};
    }
    Shape operator()(const RoiAlign& op) const {
        ensure(op.pyramid.size() == 4 && op.regions.rank() == 3 && op.regions[2] >= 5,
               "expected 4 pyramid levels and regions (N, R, 5 or more), got {} levels and {}",
               op.pyramid.size(), to_string(op.regions));
        return {op.regions[0] * op.regions[1], op.pooled * op.pooled * op.pyramid[0][3]};
    }
    Shape operator()(const RoiLoss& op) const {
        ensure_boxes(op.targets, 9);
        return {op.targets[0], 2};
    }
    Shape operator()(const Detections& op) const {
        ensure_boxes(op.proposals, 5);
        return {op.proposals[0], op.limit, 6};
    }
    Shape operator()(const CellCrossEntropy& op) const {
        ensure_image(op.input);
        ensure_boxes(op.boxes, 5);
        ensure(op.input[0] == op.boxes[0] && op.stride > 0,
               "expected logits and boxes of N images and a positive stride, got {}, {} and {}",
               to_string(op.input), to_string(op.boxes), op.stride);
        return {op.input[0], op.input[1] * op.input[2], op.input[3]};
    }
    Shape operator()(const AllGather& op) const {
        const std::int64_t own = channel_range(op.channels, op.shards, op.shard).count;
        ensure(op.input[op.input.rank() - 1] == own,
               "{} does not match shard {} of {}, for {} channels in total", to_string(op.input),
               op.shard, op.shards, op.channels);
        return with_channels(op.input, op.channels);
    }
    Shape operator()(const ReduceScatter& op) const {
        const std::int64_t channels = op.input[op.input.rank() - 1];
        return with_channels(op.input, channel_range(channels, op.shards, op.shard).count);
    }
};

/// Returns the shapes of the logits of all levels, then of the deltas of all levels.
std::vector<Shape> rpn_shapes(std::int64_t batch, const Anchors& anchors) {
    std::vector<Shape> shapes;
    for (const std::int64_t per_anchor : {1, 4}) {
        for (const Anchors::Level& level : anchors.levels) {
            shapes.push_back({batch, level.height, level.width, per_anchor * anchors.per_cell()});
        }
    }
    return shapes;
}

/// Returns the shapes of the logits and deltas of `regions` (N, R, ...), then `regions` itself.
std::vector<Shape> head_shapes(const Shape& regions, std::int64_t classes) {
    const std::int64_t rows = regions[0] * regions[1];
    return {{rows, classes}, {rows, 4 * classes}, regions};
}

struct InputShapes {
    using Shapes = std::vector<Shape>;
    Shapes operator()(const Add& op) const { return {op.input, op.input}; }
    Shapes operator()(const BatchNorm& op) const { return Shapes(op.add ? 2 : 1, op.input); }
    Shapes operator()(const DualNorm& op) const { return {op.outer.input, op.inner.input}; }
    Shapes operator()(const PointwiseNorm& op) const {
        Shapes shapes = (*this)(op.norm);
        shapes[0] = op.convolution.input;
        return shapes;
    }
    Shapes operator()(const NormPool& op) const { return {op.norm.input}; }
    Shapes operator()(const UpsampleAdd& op) const { return {op.input, op.coarse}; }
    Shapes operator()(const SoftmaxCrossEntropy& op) const { return {op.input, {op.input[0]}}; }
    Shapes operator()(const AnchorTargets& op) const { return {op.boxes, {op.boxes[0]}}; }
    Shapes operator()(const RpnLoss& op) const {
        return append(rpn_shapes(op.batch, op.anchors), op.targets);
    }
    Shapes operator()(const Proposals& op) const { return rpn_shapes(op.batch, op.anchors); }
    Shapes operator()(const RoiTargets& op) const {
        return {op.proposals, op.boxes, {op.boxes[0]}};
    }
    Shapes operator()(const RoiAlign& op) const { return append(op.pyramid, op.regions); }
    Shapes operator()(const RoiLoss& op) const { return head_shapes(op.targets, op.classes); }
    Shapes operator()(const Detections& op) const { return head_shapes(op.proposals, op.classes); }
    Shapes operator()(const CellCrossEntropy& op) const { return {op.input, op.boxes}; }
    Shapes operator()(const auto& op) const { return {op.input}; }

    static Shapes append(Shapes shapes, const Shape& last) {
        shapes.push_back(last);
        return shapes;
    }
};

struct BackwardReadsOf {
    BackwardReads operator()(const OneOf<Convolution, RpnLoss, RoiLoss> auto&) const {
        return {.inputs = true};
    }
    BackwardReads operator()(const OneOf<DualNorm, NormPool, GroupNorm> auto&) const {
        return {.inputs = true, .output_gradients = 2};
    }
    BackwardReads operator()(const PointwiseNorm& op) const {
        return {.inputs = true, .output_gradients = op.norm.add ? 2U : 1U};
    }
    BackwardReads operator()(const BatchNorm& op) const {
        if (op.frozen) return {.output = op.relu, .output_gradients = 2};
        return {.inputs = true, .output = op.add, .output_gradients = 2};
    }
    BackwardReads operator()(const Bias& op) const {
        return {.output = op.relu, .output_gradients = 2};
    }
    BackwardReads operator()(const OneOf<UpsampleAdd, Add> auto&) const {
        return {.output_gradients = 2};
    }
    BackwardReads operator()(const Relu&) const { return {.output = true, .output_gradients = 2}; }
    BackwardReads operator()(const Linear& op) const {
        return {.inputs = true, .output = op.relu, .output_gradients = op.relu ? 2U : 1U};
    }
    // The backward pass reads the second input: the labels or the boxes.
    BackwardReads operator()(const OneOf<SoftmaxCrossEntropy, CellCrossEntropy> auto&) const {
        return {.inputs = true, .output = true};
    }
    BackwardReads operator()(const auto&) const { return {}; }
};

}  // namespace

std::int64_t Anchors::count() const {
    std::int64_t cells = 0;
    for (const Level& level : levels) cells += level.height * level.width;
    return levels.empty() ? 0 : cells * per_cell();
}

ChannelRange channel_range(std::int64_t channels, int shards, int shard) {
    ensure(channels >= shards && shard >= 0 && shard < shards,
           "invalid shard {} of {} for {} channels", shard, shards, channels);
    const std::int64_t first = channels * shard / shards;
    return {first, channels * (shard + 1) / shards - first};
}

Shape output_shape(const Operation& operation) {
    return std::visit(OutputShape{}, operation);
}

std::vector<Shape> input_shapes(const Operation& operation) {
    return std::visit(InputShapes{}, operation);
}

std::optional<tensor::DType> output_dtype(const Operation& operation) {
    if (const auto* op = std::get_if<Linear>(&operation)) {
        return op->relu ? std::nullopt : std::optional(tensor::DType::f32);
    }
    if (const auto* op = std::get_if<AllGather>(&operation)) return op->dtype;
    const bool is_fp32 = is_loss(operation) || !is_differentiable(operation);
    return is_fp32 ? std::optional(tensor::DType::f32) : std::nullopt;
}

bool is_differentiable(const Operation& operation) {
    return !is_one_of<AnchorTargets, Proposals, RoiTargets, Detections>(operation);
}

bool is_loss(const Operation& operation) {
    return outputs_softmax(operation) || is_one_of<RpnLoss, RoiLoss>(operation);
}

bool outputs_softmax(const Operation& operation) {
    return is_one_of<SoftmaxCrossEntropy, CellCrossEntropy>(operation);
}

bool outputs_channel_sums(const Operation& operation) {
    const auto* op = std::get_if<Convolution>(&operation);
    return op != nullptr && op->sums;
}

bool computes_in_int8(const Convolution& op, Pass pass) {
    constexpr std::int64_t kMinChannels = 32, kChannelMultiple = 16;
    // A product is at most 255 x 127, because oneDNN adds 128 to one factor; sums stay below 2^31.
    constexpr std::int64_t kMaxTerms = std::int64_t{1} << 16;
    const std::int64_t channels = op.input[3], taps = op.kernel * op.kernel;
    const bool fits_int8 = channels >= kMinChannels && channels % kChannelMultiple == 0 &&
                           op.filters % kChannelMultiple == 0 && taps * channels <= kMaxTerms;
    if (pass == Pass::forward) return fits_int8;
    return pass == Pass::input_gradient && fits_int8 && op.stride == 1 && op.padding < op.kernel &&
           taps * op.filters <= kMaxTerms;
}

BackwardReads backward_reads(const Operation& operation) {
    return std::visit(BackwardReadsOf{}, operation);
}

std::string name_of(const Operation& operation) {
    // clang-format off
    constexpr std::array kNames{
        "input_normalize", "convolution", "batch_norm", "dual_norm", "pointwise_norm",
        "group_norm", "bias", "upsample_add", "relu", "add", "max_pool", "norm_pool",
        "global_average_pool", "linear", "softmax_cross_entropy", "anchor_targets", "rpn_loss",
        "proposals", "roi_targets", "roi_align", "roi_loss", "detections", "cell_cross_entropy",
        "all_gather", "reduce_scatter"};
    // clang-format on
    static_assert(kNames.size() == std::variant_size_v<Operation>);
    std::string name(kNames[operation.index()]);
    const auto* norm = std::get_if<BatchNorm>(&operation);
    if (norm != nullptr && norm->frozen) name = "frozen_norm";
    if (norm != nullptr && norm->add) name += "_add";
    const bool has_relu = std::visit(
        [](const auto& op) {
            if constexpr (requires { op.relu; }) return op.relu;
            return false;
        },
        operation);
    return has_relu ? name + "_relu" : name;
}

}  // namespace hpcai::ops
