// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "context.hpp"
#include "draw.hpp"
#include "scratch.hpp"

namespace hpcai::device::cpu {
namespace {

constexpr std::int64_t kBoxColumns = 5;
constexpr std::int64_t kOutputColumns = 9;  // of a row of the output

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
        const float* match = box_row(image, box);
        const ops::BoxDeltas target = ops::encode(ops::box_of(match), ops::box_of(row), op_.coder);
        out[4] = match[4];
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

KernelPtr build(const ops::RoiTargets& op, const KernelOptions& options, const Context& context) {
    return std::make_unique<RoiTargetsKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
