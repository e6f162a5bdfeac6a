// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/base/error.hpp>
#include <hpcai/ops/box_math.hpp>

#include "anchor_grid.hpp"
#include "scratch.hpp"

namespace hpcai::device::cpu {
namespace {

/// Selects those candidates of an image that have the smallest ops::sampling_key().
class Sampler {
public:
    /// Keeps the `capacity` smallest keys, as a heap in `keys`. `stage` is that of sampling_key().
    Sampler(std::uint64_t* keys, std::int64_t capacity, std::uint32_t image_key,
            std::uint32_t stage)
        : keys_(keys), capacity_(capacity), image_key_(image_key), stage_(stage) {}

    void add(std::int64_t candidate) {
        const auto number = static_cast<std::uint32_t>(candidate);
        const std::uint64_t key =
            std::uint64_t{ops::sampling_key(image_key_, stage_, number)} << 32 | number;
        if (count_ == capacity_) {
            if (count_ == 0 || key > keys_[0]) return;
            std::pop_heap(keys_, keys_ + count_--);
        }
        keys_[count_++] = key;
        std::push_heap(keys_, keys_ + count_);
    }

    /// Keeps up to `limit` candidates, those with the smallest keys, in ascending order of their
    /// numbers. Returns how many it kept.
    std::int64_t finish(std::int64_t limit) {
        std::sort_heap(keys_, keys_ + count_);
        count_ = std::min(count_, limit);
        for (std::int64_t i = 0; i < count_; ++i) keys_[i] &= 0xffffffffu;
        std::sort(keys_, keys_ + count_);
        return count_;
    }
    /// Requires finish().
    std::int64_t candidate(std::int64_t index) const {
        return static_cast<std::int64_t>(keys_[index]);
    }

private:
    std::uint64_t* keys_;
    std::int64_t capacity_;
    std::int64_t count_ = 0;
    std::uint32_t image_key_, stage_;
};

/// A row of cells of one level.
struct CellRow {
    std::size_t level = 0;
    std::int64_t y = 0;
};

/// Threads share the rows of cells of all images, then the images. For each anchor, the workspace
/// has the box with the highest IoU, and this IoU, replaced by kForced if some box overlaps no
/// other anchor more. For each box, it has the highest IoU of each row and of all.
class AnchorTargetsKernel final : public ScratchKernel<ops::AnchorTargets> {
public:
    AnchorTargetsKernel(const ops::AnchorTargets& op, const KernelOptions& options,
                        const Context& context)
        : ScratchKernel(op, options, context) {
        // The output has anchor numbers in fp32, which represents all integers below 2^24.
        ensure(op.anchors.count() < (1 << 24), "expected fewer than 2^24 anchors, got {}",
               op.anchors.count());
        for (std::size_t level = 0; level < grid_.levels(); ++level) {
            for (std::int64_t y = 0; y < op.anchors.levels[level].height; ++y) {
                rows_.push_back({level, y});
            }
        }
        count_workspace();
    }

private:
    void forward() override {
        for_each_row([this](std::int64_t image, std::int64_t row) { match(image, row); });
        for (std::int64_t i = 0; i < images_ * boxes_; ++i) {
            const float* row_best = best_in_row_ + i * row_count();
            best_of_box_[i] = *std::max_element(row_best, row_best + row_count());
        }
        for_each_row([this](std::int64_t image, std::int64_t row) { mark_best(image, row); });
#pragma omp parallel for schedule(static)
        for (std::int64_t image = 0; image < images_; ++image) sample(image);
    }

    static constexpr float kForced = 2;  // above every IoU: makes the anchor positive

    std::int64_t row_count() const {
        return static_cast<std::int64_t>(rows_.size());
    }

    void lay_out(Scratch& scratch) override {
        best_iou_ = scratch.take<float>(images_ * grid_.count());
        match_ = scratch.take<std::int32_t>(images_ * grid_.count());
        best_in_row_ = scratch.take<float>(images_ * boxes_ * row_count());
        best_of_box_ = scratch.take<float>(images_ * boxes_);
        keys_ = scratch.take<std::uint64_t>(images_ * 2 * op_.samples);
    }

    const float* box_row(std::int64_t image, std::int64_t box) const {
        return input(0) + (image * boxes_ + box) * 5;
    }

    void for_each_row(const auto& body) const {
        const std::int64_t rows = row_count();
#pragma omp parallel for collapse(2) schedule(dynamic, 8)
        for (std::int64_t image = 0; image < images_; ++image) {
            for (std::int64_t row = 0; row < rows; ++row) body(image, row);
        }
    }

    /// Calls body(anchor number, IoU) for the anchors of a row that may overlap `box`.
    void for_each_overlap(const CellRow& row, const ops::Box& box, const auto& body) const {
        const ops::Anchors::Level& level = op_.anchors.levels[row.level];
        const auto stride = static_cast<float>(level.stride);
        const auto width = static_cast<float>(level.width);
        const auto y = static_cast<float>(row.y * level.stride);
        const std::int64_t per_cell = op_.anchors.per_cell();
        for (std::int64_t index = 0; index < per_cell; ++index) {
            const auto& base = level.cell_anchors[index];
            if (!(base[1] + y < box.y2 && base[3] + y > box.y1)) continue;
            // One extra cell on each side allows for rounding.
            const float left = std::floor((box.x1 - base[2]) / stride) - 1;
            const float right = std::ceil((box.x2 - base[0]) / stride) + 1;
            const auto first = static_cast<std::int64_t>(std::clamp(left, 0.0f, width));
            const auto end = static_cast<std::int64_t>(std::clamp(right, 0.0f, width));
            for (std::int64_t x = first; x < end; ++x) {
                const std::int64_t cell = row.y * level.width + x;
                const auto at = static_cast<float>(x * level.stride);
                const ops::Box anchor{base[0] + at, base[1] + y, base[2] + at, base[3] + y};
                body(grid_.first(row.level) + cell * per_cell + index, ops::iou_of(box, anchor));
            }
        }
    }

    void match(std::int64_t image, std::int64_t index) const {
        const CellRow& row = rows_[index];
        const std::int64_t anchors = op_.anchors.levels[row.level].width * op_.anchors.per_cell();
        float* best_iou = best_iou_ + image * grid_.count();
        std::int32_t* match = match_ + image * grid_.count();
        std::fill_n(best_iou + grid_.first(row.level) + row.y * anchors, anchors, 0.0f);
        for (std::int64_t box = 0; box < boxes_; ++box) {
            float highest = 0;
            if (ops::is_box(box_row(image, box))) {
                for_each_overlap(row, ops::box_of(box_row(image, box)),
                                 [&](auto number, float iou) {
                                     highest = std::max(highest, iou);
                                     if (!(iou > best_iou[number])) return;
                                     best_iou[number] = iou;
                                     match[number] = static_cast<std::int32_t>(box);
                                 });
            }
            best_in_row_[(image * boxes_ + box) * row_count() + index] = highest;
        }
    }

    void mark_best(std::int64_t image, std::int64_t index) const {
        float* best_iou = best_iou_ + image * grid_.count();
        for (std::int64_t box = 0; box < boxes_; ++box) {
            const float highest = best_of_box_[image * boxes_ + box];
            if (best_in_row_[(image * boxes_ + box) * row_count() + index] < highest) continue;
            if (highest == 0) continue;
            for_each_overlap(rows_[index], ops::box_of(box_row(image, box)),
                             [&](auto number, float iou) {
                                 if (iou == highest) best_iou[number] = kForced;
                             });
        }
    }

    void sample(std::int64_t image) const {
        const float* best_iou = best_iou_ + image * grid_.count();
        const auto key = static_cast<std::uint32_t>(input<std::int32_t>(1)[image]);
        std::uint64_t* keys = keys_ + image * 2 * op_.samples;
        Sampler positive(keys, ops::positive_limit(op_.samples, op_.positive_share), key, 0);
        Sampler negative(keys + op_.samples, op_.samples, key, 0);
        for (std::int64_t number = 0; number < grid_.count(); ++number) {
            if (best_iou[number] >= foreground_) {
                positive.add(number);
            } else if (best_iou[number] < background_) {
                negative.add(number);
            }
        }
        const std::int64_t positives = positive.finish(op_.samples);
        const std::int64_t negatives = negative.finish(op_.samples - positives);
        float* out = output() + image * op_.samples * 6;  // columns as in write_positive()
        for (std::int64_t row = 0; row < op_.samples; ++row, out += 6) {
            std::fill_n(out, 6, 0.0f);
            if (row < positives) {
                write_positive(image, positive.candidate(row), out);
            } else if (row < positives + negatives) {
                out[0] = static_cast<float>(negative.candidate(row - positives));
            } else {
                out[0] = -1;
            }
        }
    }

    void write_positive(std::int64_t image, std::int64_t number, float* out) const {
        const std::int32_t match = match_[image * grid_.count() + number];
        const ops::BoxDeltas target =
            ops::encode(ops::box_of(box_row(image, match)), grid_.box(grid_.index_of(number)), {});
        out[0] = static_cast<float>(number);
        out[1] = 1;
        out[2] = target.x;
        out[3] = target.y;
        out[4] = target.w;
        out[5] = target.h;
    }

    const AnchorGrid grid_{op_.anchors};
    const std::int64_t images_ = op_.boxes[0], boxes_ = op_.boxes[1];
    const float foreground_ = static_cast<float>(op_.foreground_iou);
    const float background_ = static_cast<float>(op_.background_iou);
    std::vector<CellRow> rows_;
    float* best_iou_ = nullptr;      // (images, anchors)
    std::int32_t* match_ = nullptr;  // (images, anchors)
    float* best_in_row_ = nullptr;   // (images, boxes, rows)
    float* best_of_box_ = nullptr;   // (images, boxes)
    std::uint64_t* keys_ = nullptr;  // (images, 2, samples)
};

constexpr std::int64_t kBoxColumns = 5;     // four coordinates, and the class or score
constexpr std::int64_t kOutputColumns = 9;  // four coordinates, class (-1: unused), four deltas

/// Workspace: the matching box of each candidate, -1 for background, and the sampling keys.
class RoiTargetsKernel final : public ScratchKernel<ops::RoiTargets> {
public:
    RoiTargetsKernel(const ops::RoiTargets& op, const KernelOptions& options,
                     const Context& context)
        : ScratchKernel(op, options, context) {
        count_workspace();
    }

private:
    void forward() override {
#pragma omp parallel for schedule(static)
        for (std::int64_t image = 0; image < images_; ++image) sample(image);
    }

    void lay_out(Scratch& scratch) override {
        match_ = scratch.take<std::int32_t>(images_ * (proposals_ + boxes_));
        keys_ = scratch.take<std::uint64_t>(images_ * 2 * op_.samples);
    }

    const float* box_row(std::int64_t image, std::int64_t box) const {
        return input(1) + (image * boxes_ + box) * kBoxColumns;
    }
    const float* candidate_row(std::int64_t image, std::int64_t candidate) const {
        if (candidate >= proposals_) return box_row(image, candidate - proposals_);
        return input(0) + (image * proposals_ + candidate) * kBoxColumns;
    }

    std::int32_t match(std::int64_t image, std::int64_t candidate) const {
        const ops::Box region = ops::box_of(candidate_row(image, candidate));
        float best = 0;
        std::int32_t found = -1;
        for (std::int64_t box = 0; box < boxes_; ++box) {
            if (!ops::is_box(box_row(image, box))) continue;
            const float iou = ops::iou_of(ops::box_of(box_row(image, box)), region);
            if (!(iou > best)) continue;
            best = iou;
            found = static_cast<std::int32_t>(box);
        }
        return best >= foreground_ ? found : -1;
    }

    void sample(std::int64_t image) const {
        const auto key = static_cast<std::uint32_t>(input<std::int32_t>(2)[image]);
        std::uint64_t* keys = keys_ + image * 2 * op_.samples;
        Sampler foreground(keys, ops::positive_limit(op_.samples, op_.positive_share), key, 1);
        Sampler background(keys + op_.samples, op_.samples, key, 1);
        std::int32_t* matches = match_ + image * (proposals_ + boxes_);
        for (std::int64_t candidate = 0; candidate < proposals_ + boxes_; ++candidate) {
            const float* row = candidate_row(image, candidate);
            if (candidate < proposals_ ? !(row[4] >= 0) : !ops::is_box(row)) continue;
            matches[candidate] = match(image, candidate);
            (matches[candidate] < 0 ? background : foreground).add(candidate);
        }
        const std::int64_t positives = foreground.finish(op_.samples);
        const std::int64_t negatives = background.finish(op_.samples - positives);
        float* out = output() + image * op_.samples * kOutputColumns;
        for (std::int64_t row = 0; row < op_.samples; ++row, out += kOutputColumns) {
            std::fill_n(out, kOutputColumns, 0.0f);
            if (row < positives) {
                write(image, foreground.candidate(row), out);
            } else if (row < positives + negatives) {
                write(image, background.candidate(row - positives), out);
            } else {
                out[4] = -1;
            }
        }
    }

    void write(std::int64_t image, std::int64_t candidate, float* out) const {
        const float* row = candidate_row(image, candidate);
        std::copy_n(row, 4, out);
        const std::int32_t box = match_[image * (proposals_ + boxes_) + candidate];
        if (box < 0) return;
        const float* found = box_row(image, box);
        const ops::BoxDeltas target = ops::encode(ops::box_of(found), ops::box_of(row), op_.coder);
        out[4] = found[4];
        out[5] = target.x;
        out[6] = target.y;
        out[7] = target.w;
        out[8] = target.h;
    }

    const std::int64_t images_ = op_.boxes[0], proposals_ = op_.proposals[1], boxes_ = op_.boxes[1];
    const float foreground_ = static_cast<float>(op_.foreground_iou);
    std::int32_t* match_ = nullptr;  // (images, proposals + boxes)
    std::uint64_t* keys_ = nullptr;  // (images, 2, samples)
};

}  // namespace

HPCAI_BUILD_KERNEL(AnchorTargets)
HPCAI_BUILD_KERNEL(RoiTargets)

}  // namespace hpcai::device::cpu
