// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/base/error.hpp>

#include "anchor_grid.hpp"
#include "suppression.hpp"

namespace hpcai::device::cpu {
namespace {

/// Threads first select candidates in parallel, each in a pyramid level of an image. Then they
/// merge the levels of each image in parallel.
class ProposalsKernel final : public ScratchKernel<ops::Proposals> {
public:
    ProposalsKernel(const ops::Proposals& op, const KernelOptions& options, const Context& context)
        : ScratchKernel(op, options, context),
          lists_(static_cast<std::size_t>(op.batch * levels_)) {
        count_workspace();
    }

private:
    void forward() override {
#pragma omp parallel for collapse(2) schedule(dynamic)
        for (std::int64_t level = 0; level < levels_; ++level) {  // the largest level first
            for (std::int64_t image = 0; image < op_.batch; ++image) {
                propose(image, static_cast<std::size_t>(level));
            }
        }
#pragma omp parallel for schedule(static)
        for (std::int64_t image = 0; image < op_.batch; ++image) write(image);
    }

    void lay_out(Scratch& scratch) override {
        keys_ = scratch.take<std::uint64_t>(op_.batch * grid_.count());
        next_ = scratch.take<std::int64_t>(op_.batch * levels_);
        for (std::int64_t image = 0; image < op_.batch; ++image) {
            for (std::size_t level = 0; level < grid_.levels(); ++level) {
                list(image, level).lay_out(scratch, candidate_count(level));
            }
        }
    }
    std::int64_t candidate_count(std::size_t level) const {
        return std::min(op_.per_level, grid_.count(level));
    }
    RankedBoxes& list(std::int64_t image, std::size_t level) {
        return lists_[static_cast<std::size_t>(image * levels_) + level];
    }

    /// Returns the keys of a level's anchors; the best candidate_count() come first, in order.
    const std::uint64_t* rank_anchors(std::int64_t image, std::size_t level) const {
        std::uint64_t* keys = keys_ + image * grid_.count() + grid_.first(level);
        const ImageAccessor& logits = outputs_.logits(level);
        const std::int64_t per_cell = op_.anchors.per_cell(), count = grid_.count(level);
        for (std::int64_t index = 0; index < per_cell; ++index) {
            std::int64_t at = logits.index(image, 0, index);
            for (std::int64_t i = index; i < count; i += per_cell, at += logits.pixel_stride()) {
                const float logit = logits.read(tensors_.inputs[level], at);
                keys[i] = rank_key(logit, grid_.first(level) + i);
            }
        }
        const std::int64_t selected = candidate_count(level);
        if (selected < count) std::nth_element(keys, keys + selected, keys + count);
        std::sort(keys, keys + selected);
        return keys;
    }

    void propose(std::int64_t image, std::size_t level) {
        const std::uint64_t* keys = rank_anchors(image, level);
        RankedBoxes& kept = list(image, level);
        kept.count = 0;
        const ops::ImageBounds bounds{static_cast<float>(op_.anchors.image_height),
                                      static_cast<float>(op_.anchors.image_width),
                                      static_cast<float>(op_.minimum_side)};
        for (std::int64_t i = 0; i < candidate_count(level); ++i) {
            const AnchorIndex at = grid_.index_of(number_of(keys[i]));
            if (std::isnan(score_of(keys[i]))) break;
            ops::Box box = ops::decode(outputs_.deltas(tensors_.inputs, image, at), grid_.box(at),
                                       ops::BoxCoder{});
            if (clip_to_image(box, bounds)) kept.try_add(box, keys[i], max_iou_, loops_);
        }
    }

    void write(std::int64_t image) {
        float* out = output() + image * op_.limit * 5;  // four coordinates, score (-1: unused)
        const std::int64_t written =
            for_each_best(&list(image, 0), levels_, next_ + image * levels_, op_.limit,
                          [&](const RankedBoxes& from, std::int64_t index) {
                              const ops::Box box = from.box(index);
                              const float logit = score_of(from.keys[index]);
                              const float score = 1 / (1 + std::exp(-logit));
                              for (const float number : {box.x1, box.y1, box.x2, box.y2, score}) {
                                  *out++ = number;
                              }
                          });
        for (std::int64_t row = written; row < op_.limit; ++row, out += 5) {
            std::fill_n(out, 4, 0.0f);
            out[4] = -1;
        }
    }

    const SimdKernels& loops_ = *context_.loops;
    const AnchorGrid grid_{op_.anchors};
    const RpnOutputs outputs_{op_.batch, op_.anchors, context_.layouts, options_.compute};
    const std::int64_t levels_ = static_cast<std::int64_t>(grid_.levels());
    const float max_iou_ = ops::rounded_down(op_.nms_iou);
    std::vector<RankedBoxes> lists_;  // (images, levels)
    std::uint64_t* keys_ = nullptr;   // (images, anchors)
    std::int64_t* next_ = nullptr;    // (images, levels)
};

/// Threads process the regions in parallel, then the classes of all images, then the images. The
/// `number` in rank_key() is class x regions + region; it orders equal scores.
class DetectionsKernel final : public ScratchKernel<ops::Detections> {
public:
    DetectionsKernel(const ops::Detections& op, const KernelOptions& options,
                     const Context& context)
        : ScratchKernel(op, options, context),
          lists_(static_cast<std::size_t>(images_ * op.classes)) {
        ensure(op.classes > 1, "detections need at least 2 classes including background, got {}",
               op.classes);
        count_workspace();
    }

private:
    void forward() override {
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < images_ * regions_; ++row) compute_scores(row);
#pragma omp parallel for collapse(2) schedule(dynamic)
        for (std::int64_t image = 0; image < images_; ++image) {
            for (std::int64_t label = 1; label < op_.classes; ++label) detect(image, label);
        }
#pragma omp parallel for schedule(static)
        for (std::int64_t image = 0; image < images_; ++image) write(image);
    }

    void lay_out(Scratch& scratch) override {
        scores_ = scratch.take<float>(images_ * regions_ * op_.classes);
        keys_ = scratch.take<std::uint64_t>(images_ * regions_ * op_.classes);
        next_ = scratch.take<std::int64_t>(images_ * op_.classes);
        for (RankedBoxes& list : lists_) list.lay_out(scratch, regions_);
    }
    RankedBoxes& list(std::int64_t image, std::int64_t label) {
        return lists_[image * op_.classes + label];
    }
    const float* proposal(std::int64_t row) const {
        return input(2) + row * 5;
    }

    /// Computes the softmax of a region's logits.
    void compute_scores(std::int64_t row) const {
        const float* logits = input(0) + row * op_.classes;
        float* scores = scores_ + row * op_.classes;
        const float highest = *std::max_element(logits, logits + op_.classes);
        double sum = 0;
        for (std::int64_t k = 0; k < op_.classes; ++k) {
            scores[k] = std::exp(logits[k] - highest);
            sum += scores[k];
        }
        for (std::int64_t k = 0; k < op_.classes; ++k) {
            scores[k] = static_cast<float>(scores[k] / sum);
        }
    }

    void detect(std::int64_t image, std::int64_t label) {
        std::uint64_t* keys = keys_ + (image * op_.classes + label) * regions_;
        std::int64_t candidates = 0;
        for (std::int64_t region = 0; region < regions_; ++region) {
            const std::int64_t row = image * regions_ + region;
            const float class_score = scores_[row * op_.classes + label];
            if (!(proposal(row)[4] >= 0) || !(class_score > score_threshold_)) continue;
            keys[candidates++] = rank_key(class_score, label * regions_ + region);
        }
        std::sort(keys, keys + candidates);
        RankedBoxes& kept = list(image, label);
        kept.count = 0;
        const ops::ImageBounds bounds{static_cast<float>(op_.image_height),
                                      static_cast<float>(op_.image_width),
                                      static_cast<float>(op_.minimum_side)};
        for (std::int64_t i = 0; i < candidates; ++i) {
            const std::int64_t row = image * regions_ + number_of(keys[i]) % regions_;
            ops::Box box = decoded_proposal(row, label);
            if (clip_to_image(box, bounds)) kept.try_add(box, keys[i], max_iou_, loops_);
        }
    }

    ops::Box decoded_proposal(std::int64_t row, std::int64_t label) const {
        const float* deltas = input(1) + (row * op_.classes + label) * 4;
        return ops::decode({deltas[0], deltas[1], deltas[2], deltas[3]}, ops::box_of(proposal(row)),
                           op_.coder);
    }

    void write(std::int64_t image) {
        float* out = output() + image * op_.limit * 6;  // four coordinates, score, class
        const std::int64_t written = for_each_best(
            &list(image, 1), op_.classes - 1, next_ + image * op_.classes, op_.limit,
            [&](const RankedBoxes& from, std::int64_t index) {
                const ops::Box box = from.box(index);
                const auto label = static_cast<float>(number_of(from.keys[index]) / regions_);
                for (const float number :
                     {box.x1, box.y1, box.x2, box.y2, score_of(from.keys[index]), label}) {
                    *out++ = number;
                }
            });
        std::fill_n(out, (op_.limit - written) * 6, 0.0f);
    }

    const SimdKernels& loops_ = *context_.loops;
    const std::int64_t images_ = op_.proposals[0], regions_ = op_.proposals[1];
    const float score_threshold_ = static_cast<float>(op_.score_threshold);
    const float max_iou_ = ops::rounded_down(op_.nms_iou);
    std::vector<RankedBoxes> lists_;  // (images, classes)
    float* scores_ = nullptr;         // (images, regions, classes)
    std::uint64_t* keys_ = nullptr;   // (images, classes, regions)
    std::int64_t* next_ = nullptr;    // (images, classes)
};

}  // namespace

HPCAI_BUILD_KERNEL(Proposals)
HPCAI_BUILD_KERNEL(Detections)

}  // namespace hpcai::device::cpu
