// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include <hpcai/reference/naive_ops.hpp>
#include <hpcai/reference/naive_random.hpp>

/// Random problems of detection. Boxes have integer corners, and many scores are equal.
namespace hpcai::device {

/// Returns anchors of an image of 64 x 96 pixels: five levels with three anchors per cell.
inline ops::Anchors small_anchors() {
    ops::Anchors anchors{.image_height = 64, .image_width = 96};
    for (std::int64_t level = 0; level < 5; ++level) {
        const std::int64_t stride = 4 << level;
        ops::Anchors::Level at{(64 + stride - 1) / stride, 96 / stride, stride, {}};
        const auto side = static_cast<float>(4 * stride / 2);
        at.cell_anchors = {{-side, -side / 2, side, side / 2},
                           {-side / 2, -side / 2, side / 2, side / 2},
                           {-side / 4, -side / 2, side / 4, side / 2}};
        anchors.levels.push_back(at);
    }
    return anchors;
}

class DetectionProblems {
public:
    explicit DetectionProblems(tensor::DType compute) : compute_(compute) {}

    std::int64_t below(std::int64_t n) {
        return static_cast<std::int64_t>(fp32_.below({1}, static_cast<std::uint32_t>(n))[0]);
    }

    /// Returns `rows` boxes (x1, y1, x2, y2) inside 64 x 96 pixels with sides of at least 2.
    naive::Tensor boxes(std::int64_t images, std::int64_t rows, std::int64_t columns) {
        naive::Tensor tensor({images, rows, columns});
        for (std::int64_t row = 0; row < images * rows; ++row) {
            const std::int64_t width = 2 + below(40), height = 2 + below(30);
            const std::int64_t x = below(97 - width), y = below(65 - height);
            const std::array<std::int64_t, 4> corners{x, y, x + width, y + height};
            for (std::int64_t i = 0; i < 4; ++i) {
                tensor[row * columns + i] =
                    static_cast<double>(corners[static_cast<std::size_t>(i)]);
            }
        }
        return tensor;
    }
    /// Returns boxes with classes below `classes`; the last image has no boxes, and some rows are
    /// empty.
    naive::Tensor labelled(std::int64_t images, std::int64_t rows, std::int64_t classes = 5) {
        naive::Tensor tensor = boxes(images, rows, 5);
        for (std::int64_t row = 0; row < images * rows; ++row) {
            const bool empty = row / rows == images - 1 || below(4) == 0;
            tensor[row * 5 + 4] = empty ? 0 : static_cast<double>(1 + below(classes - 1));
            for (std::int64_t i = 0; i < 4 && empty; ++i) tensor[row * 5 + i] = 0;
        }
        return tensor;
    }
    /// Returns proposals; the last ones of each image are unused.
    naive::Tensor proposals(std::int64_t images, std::int64_t rows) {
        naive::Tensor tensor = boxes(images, rows, 5);
        for (std::int64_t row = 0; row < images * rows; ++row) {
            const bool unused = row % rows > rows - 4;
            tensor[row * 5 + 4] = unused ? -1 : static_cast<double>(below(100)) / 100;
            for (std::int64_t i = 0; i < 4 && unused; ++i) tensor[row * 5 + i] = 0;
        }
        return tensor;
    }
    naive::Tensor keys(std::int64_t images) {
        naive::Tensor tensor({images});
        for (double& key : tensor.values) key = static_cast<double>(below(1 << 30)) - (1 << 29);
        return tensor;
    }

    naive::Problem anchor_targets(std::int64_t images, std::int64_t samples) {
        const ops::AnchorTargets op{{images, 6, 5}, small_anchors(), samples};
        return {.operation = op, .inputs = {labelled(images, 6), keys(images)}};
    }

    /// Returns logits in steps of 1/4 and deltas, for each level.
    std::vector<naive::Tensor> anchor_numbers(std::int64_t images) {
        std::vector<naive::Tensor> all;
        for (const std::int64_t numbers : {3, 12}) {
            for (const auto& level : small_anchors().levels) {
                const tensor::Shape shape{images, level.height, level.width, numbers};
                naive::Random random(compute_, 11 + stream_++);
                naive::Tensor tensor = random.normal(shape, 0, numbers == 3 ? 2 : 0.25);
                for (double& value : tensor.values) {
                    if (numbers == 3) value = std::round(value * 4) / 4;
                }
                all.push_back(tensor);
            }
        }
        return all;
    }
    naive::Problem rpn_loss(std::int64_t images, std::int64_t samples) {
        const naive::Problem targets = anchor_targets(images, samples);
        naive::Problem problem{.operation =
                                   ops::RpnLoss{images, small_anchors(), {images, samples, 6}}};
        problem.inputs = anchor_numbers(images);
        problem.inputs.push_back(in_fp32(naive::solve(targets).output));
        problem.loss_scale = 8;
        return problem;
    }
    naive::Problem proposals_of(std::int64_t images, std::int64_t per_level, std::int64_t limit) {
        return {.operation = ops::Proposals{images, small_anchors(), per_level, limit},
                .inputs = anchor_numbers(images)};
    }
    naive::Problem roi_targets(std::int64_t images, std::int64_t samples) {
        const ops::RoiTargets op{{images, 50, 5}, {images, 6, 5}, samples};
        return {.operation = op,
                .inputs = {proposals(images, 50), labelled(images, 6), keys(images)}};
    }
    naive::Problem roi_align(std::int64_t images, std::int64_t rows, std::int64_t channels) {
        ops::RoiAlign op{.regions = {images, rows, 5}};
        naive::Problem problem;
        naive::Random random(compute_, 40);
        for (const std::int64_t stride : {4, 8, 16, 32}) {
            op.pyramid.push_back({images, 64 * 8 / stride, 96 * 8 / stride, channels});
            problem.inputs.push_back(random.normal(op.pyramid.back()));
        }
        naive::Tensor regions = proposals(images, rows);
        for (std::int64_t row = 0; row < images * rows; ++row) {
            const double scale = std::exp2(static_cast<double>(row % 5) - 1) + 0.125;
            for (std::int64_t i = 0; i < 4; ++i) regions[row * 5 + i] *= scale;
        }
        problem.operation = op;
        problem.inputs.push_back(regions);
        problem.output_gradients = {random.normal(output_shape(op))};
        return problem;
    }
    naive::Problem roi_loss(std::int64_t images, std::int64_t samples) {
        const ops::RoiLoss op{{images, samples, 9}, 5};
        const std::int64_t rows = images * samples;
        naive::Problem problem{.operation = op, .loss_scale = 0.125};
        problem.inputs = {fp32_.normal({rows, 5}, 0, 2), fp32_.normal({rows, 20}),
                          in_fp32(naive::solve(roi_targets(images, samples)).output)};
        return problem;
    }
    naive::Problem detections(std::int64_t images, std::int64_t rows, std::int64_t classes,
                              std::int64_t limit) {
        const ops::Detections op{.proposals = {images, rows, 5},
                                 .classes = classes,
                                 .image_height = 64,
                                 .image_width = 96,
                                 .limit = limit};
        naive::Problem problem{.operation = op, .training = false};
        problem.inputs = {fp32_.normal({images * rows, classes}, 0, 2),
                          fp32_.normal({images * rows, 4 * classes}, 0, 0.5),
                          proposals(images, rows)};
        for (double& value : problem.inputs[0].values) value = std::round(value * 2) / 2;
        return problem;
    }

private:
    static naive::Tensor in_fp32(naive::Tensor tensor) {
        for (double& value : tensor.values) value = static_cast<float>(value);
        return tensor;
    }
    tensor::DType compute_;
    std::uint32_t stream_ = 0;
    naive::Random fp32_{tensor::DType::f32, 10};
};

}  // namespace hpcai::device
