// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <hpcai/base/error.hpp>

#include "anchor_grid.hpp"
#include "suppression.hpp"

namespace hpcai::device::cpu {
namespace {

/// Parallel over the levels of all images, then over the images.
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
            const AnchorIndex at = grid_.index_of(index_of(keys[i]));
            if (std::isnan(score_of(keys[i]))) break;
            ops::Box box = ops::decode(outputs_.deltas(tensors_.inputs, image, at), grid_.box(at),
                                       ops::BoxCoder{});
            if (clip_to_image(box, bounds)) kept.try_add(box, keys[i], max_iou_, loops_);
        }
    }

    void write(std::int64_t image) {
        float* out = output() + image * op_.limit * 5;
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

}  // namespace

KernelPtr build(const ops::Proposals& op, const KernelOptions& options, const Context& context) {
    return std::make_unique<ProposalsKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
