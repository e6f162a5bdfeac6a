// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "kernels/detection_cases.hpp"
#include "kernels/reference/anchor_targets.hpp"
#include "kernels/reference/detections.hpp"
#include "kernels/reference/proposals.hpp"
#include "kernels/reference/roi_targets.hpp"
#include "kernels/reference/suppression.hpp"

/// The kernels that select anchors, regions and boxes, compared with naive references.
namespace hpcai::kernels {
namespace {

constexpr std::array<std::uint32_t, 2> kImage{64, 96};

Buffer scratch(std::size_t bytes) {
    return {DType::u8, static_cast<std::int64_t>(bytes)};
}

/// Logits with `steps` distinct values, so that many are equal, and deltas.
struct RpnBuffers {
    RpnBuffers(Contents& contents, const AnchorGrid& grid, int images, DType dtype,
               std::uint32_t steps) {
        rpn.dtype = dtype;
        rpn.logit_stride = 4;
        rpn.delta_stride = 12;
        for (int level = 0; level < grid.levels; ++level) {
            const std::int64_t pixels = images * grid.count_of(level) / grid.per_cell;
            values.push_back(
                contents.whole(dtype, pixels * 4, steps, -static_cast<int>(steps) / 2));
            values.push_back(contents.normal(dtype, pixels * 12));
            for (std::int64_t i = 0; i < pixels * 4; ++i) {
                values[values.size() - 2].set(i, values[values.size() - 2][i] / 8);
            }
            for (std::int64_t i = 0; i < pixels * 12; ++i) {
                values.back().set(i, values.back()[i] / 4);
            }
        }
        for (int level = 0; level < grid.levels; ++level) {
            rpn.logits[level] = values[static_cast<std::size_t>(2 * level)].data();
            rpn.deltas[level] = values[static_cast<std::size_t>(2 * level + 1)].data();
        }
    }
    RpnOutputs rpn;
    std::vector<Buffer> values;
};

class ProposalKernels : public ForEachDtype {
protected:
    Contents contents_{50};

    static ProposalsShape shape(const AnchorGrid& grid, int per_level, int limit) {
        return {.grid = grid,
                .images = 2,
                .per_level = per_level,
                .limit = limit,
                .nms_iou = 0.7f,
                .bounds = {64, 96, 1e-3f}};
    }
    static void compare(const ProposalsShape& shape, const RpnBuffers& in) {
        Buffer got(DType::f32, std::int64_t{shape.images} * shape.limit * 5), want = got;
        Buffer workspace = scratch(proposals_workspace_bytes(shape));
        proposals(shape, {in.rpn, got.as<float>(), workspace.data()}, nullptr);
        reference::proposals(shape, {in.rpn, want.as<float>(), nullptr}, nullptr);
        EXPECT_TRUE(same(got, want)) << shape.per_level << ", " << shape.limit;
        EXPECT_TRUE(workspace.guard_is_intact());
    }
};

TEST_P(ProposalKernels, EqualTheReferences) {
    const AnchorGrid grid = small_grid(16, 24, 5);
    for (const std::uint32_t steps : {1000u, 9u}) {
        const RpnBuffers in(contents_, grid, 2, GetParam(), steps);
        for (const auto& [per_level, limit] :
             std::vector<std::array<int, 2>>{{1, 1}, {70, 33}, {1000, 1000}, {2000, 4096}}) {
            compare(shape(grid, per_level, limit), in);
        }
    }
}

TEST_P(ProposalKernels, EqualTheReferencesWhereALevelHasSeveralChunks) {
    const AnchorGrid grid = small_grid(80, 96, 2);
    ProposalsShape large = shape(grid, 900, 500);
    large.bounds = {320, 384, 1e-3f};
    compare(large, RpnBuffers(contents_, grid, 2, GetParam(), 41));
}

TEST_P(ProposalKernels, OmitWhatIsNoNumber) {
    const AnchorGrid grid = small_grid(16, 24, 3);
    RpnBuffers in(contents_, grid, 2, GetParam(), 30);
    for (Buffer& values : in.values) {
        for (std::int64_t i = 0; i < values.count(); i += 7) {
            values.set(i, i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY);
        }
    }
    compare(shape(grid, 500, 600), in);
    for (std::size_t level = 0; level < 3; ++level) {
        for (std::int64_t i = 0; i < in.values[2 * level].count(); ++i) {
            in.values[2 * level].set(i, NAN);
        }
    }
    compare(shape(grid, 500, 600), in);
}

TEST(Suppression, IsTheTwinsForListsOfAllLengths) {
    Contents contents(51);
    for (const int length : {1, 63, 64, 65, 300, 1100}) {
        Buffer boxes = random_boxes(contents, 3 * length, 4 + 1, {30, 30}, 2);
        Buffer packed(DType::f32, std::int64_t{3} * length * 4);
        std::vector<std::uint64_t> keys(static_cast<std::size_t>(3 * length));
        for (std::int64_t i = 0; i < 3 * length; ++i) {
            for (std::int64_t k = 0; k < 4; ++k) packed.set(4 * i + k, boxes[5 * i + k]);
            keys[static_cast<std::size_t>(i)] =
                i % 5 == 3 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(i);
        }
        std::vector<std::uint64_t> want = keys;
        const std::vector<std::int32_t> counts{length, length / 2, 0};
        BoxLists lists{.lists = 3,
                       .length = length,
                       .max_iou = 0.3f,
                       .counts = counts.data(),
                       .boxes = packed.as<float>(),
                       .keys = keys.data()};
        std::vector<unsigned long long> overlaps(
            static_cast<std::size_t>(3 * length * lists.overlap_words()), ~0ull);
        lists.overlaps = overlaps.data();
        suppress(lists, nullptr);
        lists.keys = want.data();
        reference::suppress(lists, nullptr);
        EXPECT_EQ(keys, want) << length;
    }
}

TEST(Suppression, RejectsListsThatAreTooLong) {
    EXPECT_THROW(suppress({.lists = 1, .length = 4097}, nullptr), Error);
    EXPECT_THROW(suppress({.lists = 65536, .length = 1}, nullptr), Error);
}

TEST(DetectionKernels, EqualTheReferences) {
    Contents contents(52);
    for (const auto& [regions, classes, limit] :
         std::vector<std::array<int, 3>>{{1, 2, 1}, {40, 5, 100}, {130, 21, 60}, {1000, 3, 4000}}) {
        const std::int64_t rows = 2 * regions;
        Buffer logits = contents.whole(DType::f32, rows * classes, 9, -4);
        Buffer deltas = contents.normal(DType::f32, rows * classes * 4);
        Buffer proposals = random_boxes(contents, rows, 5, kImage, 1);
        for (std::int64_t row = 4; row < rows; row += 9) proposals.set(row * 5 + 4, -1);
        for (std::int64_t i = 13; i < logits.count(); i += 31) logits.set(i, NAN);
        for (std::int64_t i = 17; i < deltas.count(); i += 37) deltas.set(i, INFINITY);
        const DetectionsShape shape{.images = 2,
                                    .regions = regions,
                                    .classes = classes,
                                    .limit = limit,
                                    .score_threshold = 0.05f,
                                    .nms_iou = 0.5f,
                                    .bounds = {64, 96, 1e-2f},
                                    .coder = {10, 5}};
        Buffer got(DType::f32, std::int64_t{2} * limit * 6), want = got;
        Buffer workspace = scratch(detections_workspace_bytes(shape));
        DetectionsArguments of{logits.as<float>(), deltas.as<float>(), proposals.as<float>(),
                               got.as<float>(), workspace.data()};
        detections(shape, of, nullptr);
        of.detections = want.as<float>();
        reference::detections(shape, of, nullptr);
        EXPECT_TRUE(near(got, want, 1e-6)) << regions << " regions";
        EXPECT_TRUE(workspace.guard_is_intact());
    }
}

class AnchorTargetKernels : public testing::Test {
protected:
    Contents contents_{53};
    Buffer keys_ = contents_.whole(DType::s32, 2, 1u << 30, -(1 << 29));

    void compare(const AnchorGrid& grid, Buffer boxes, int samples, int max_positive) {
        const AnchorTargetsShape shape{.grid = grid,
                                       .images = 2,
                                       .boxes = static_cast<int>(boxes.count() / 10),
                                       .samples = samples,
                                       .max_positive = max_positive,
                                       .foreground_iou = 0.7f,
                                       .background_iou = 0.3f};
        Buffer got(DType::f32, std::int64_t{2} * samples * 6), want = got;
        Buffer workspace = scratch(anchor_targets_workspace_bytes(shape));
        AnchorTargetsArguments of{boxes.as<float>(), keys_.as<std::int32_t>(), got.as<float>(),
                                  workspace.data()};
        anchor_targets(shape, of, nullptr);
        of.targets = want.as<float>();
        reference::anchor_targets(shape, of, nullptr);
        EXPECT_TRUE(same(got, want)) << samples;
        EXPECT_TRUE(workspace.guard_is_intact());
    }
};

TEST_F(AnchorTargetKernels, EqualTheReferences) {
    for (const int boxes : {1, 15, 100}) {
        for (const auto& [samples, most] :
             std::vector<std::array<int, 2>>{{1, 0}, {8, 4}, {64, 32}, {4000, 2000}}) {
            compare(small_grid(16, 24, 5), random_boxes(contents_, 2 * boxes, 5, kImage, 3),
                    samples, most);
        }
    }
}

TEST_F(AnchorTargetKernels, EqualTheReferencesOfSeveralChunks) {
    compare(small_grid(80, 96, 2), random_boxes(contents_, 20, 5, {320, 384}, 3), 256, 128);
}

TEST_F(AnchorTargetKernels, TakeWhatIsNoBoxForNone) {
    Buffer boxes = random_boxes(contents_, 16, 5, kImage, 2);
    for (std::int64_t row = 0; row < 8; ++row) boxes.set(row * 5 + row % 5, NAN);
    compare(small_grid(16, 24, 5), boxes, 64, 32);
}

TEST(RoiTargetKernels, EqualTheReferences) {
    Contents contents(54);
    const Buffer keys = contents.whole(DType::s32, 2, 1u << 30, -(1 << 29));
    for (const auto& [proposals, boxes, samples] :
         std::vector<std::array<int, 3>>{{1, 1, 4}, {50, 6, 20}, {200, 6, 300}, {1500, 15, 512}}) {
        Buffer rows = random_boxes(contents, 2 * proposals, 5, {24, 24}, 1);
        Buffer truth = random_boxes(contents, 2 * boxes, 5, {24, 24}, 4);
        for (std::int64_t row = 2; row < 2 * proposals; row += 5) rows.set(row * 5 + 4, -1);
        truth.set(2, NAN);
        const RoiTargetsShape shape{.images = 2,
                                    .proposals = proposals,
                                    .boxes = boxes,
                                    .samples = samples,
                                    .max_foreground = samples / 4,
                                    .foreground_iou = 0.5f,
                                    .coder = {10, 5}};
        Buffer got(DType::f32, std::int64_t{2} * samples * 9), want = got;
        Buffer workspace = scratch(roi_targets_workspace_bytes(shape)), copy = keys;
        RoiTargetsArguments of{rows.as<float>(), truth.as<float>(), copy.as<std::int32_t>(),
                               got.as<float>(), workspace.data()};
        roi_targets(shape, of, nullptr);
        of.targets = want.as<float>();
        reference::roi_targets(shape, of, nullptr);
        EXPECT_TRUE(same(got, want)) << proposals << " proposals";
        EXPECT_TRUE(workspace.guard_is_intact());
    }
}

TEST(DetectionKernels, RejectSizesThatTheyHaveNoRoomFor) {
    const AnchorGrid grid = small_grid(4, 4, 2);
    EXPECT_THROW(
        proposals_workspace_bytes({.grid = grid, .images = 1, .per_level = 4097, .limit = 1}),
        Error);
    EXPECT_THROW(
        detections_workspace_bytes({.images = 1, .regions = 5000, .classes = 2, .limit = 1}),
        Error);
    EXPECT_THROW(
        anchor_targets_workspace_bytes({.grid = grid, .images = 1, .boxes = 1, .samples = 4097}),
        Error);
    EXPECT_THROW(roi_targets_workspace_bytes({.images = 1, .samples = 4097}), Error);
    EXPECT_THROW(make_anchor_grid({}), Error);
}

INSTANTIATE_TEST_SUITE_P(, ProposalKernels, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
