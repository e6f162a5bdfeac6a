// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include <hpcai/evaluation/average_precision.hpp>
#include <hpcai/evaluation/detection_ensemble.hpp>

#include "random_detections.hpp"
#include "thread_communicator.hpp"

namespace hpcai::evaluation {
namespace {

using Detections = std::vector<Detection>;

const Box kSameBox{10, 20, 30, 40};

class FusionOverRanks : public testing::TestWithParam<FusionMethod> {};

/// Four models of a random test set with many equal scores.
std::vector<Detections> four_models() {
    const RandomSet set{.images = 23, .detections = 150};
    std::vector<Detections> models;
    for (std::uint32_t number = 0; number < 4; ++number) {
        models.push_back(random_detections(set, number));
    }
    models[2].clear();
    return models;
}

/// The result of rank 0 if `hosted[r]` of the models are on rank r.
Detections fused_by(const std::vector<Detections>& models, const std::vector<std::size_t>& hosted,
                    FusionMethod method, std::int64_t chunk_images) {
    Detections result;
    run_members(static_cast<int>(hosted.size()), [&](comm::Communicator& ranks) {
        const auto rank = static_cast<std::ptrdiff_t>(ranks.rank());
        const auto first = std::accumulate(hosted.begin(), hosted.begin() + rank, std::size_t{0});
        std::vector<Member> mine;
        for (std::size_t index = 0; index < hosted[static_cast<std::size_t>(rank)]; ++index) {
            mine.push_back({models[first + index], 1.0 + static_cast<double>(first + index)});
        }
        Detections got = fuse_detections(ranks, mine, 23, {.method = method}, chunk_images);
        if (rank == 0) {
            result = std::move(got);
        } else {
            EXPECT_TRUE(got.empty());
        }
    });
    return result;
}

TEST_P(FusionOverRanks, DoesNotDependOnTheRanksThatHostTheModelsNorOnTheChunk) {
    const std::vector<Detections> models = four_models();
    const Detections alone = fused_by(models, {4}, GetParam(), 1000);
    EXPECT_GT(alone.size(), 23U);
    EXPECT_TRUE(std::ranges::is_sorted(alone, {}, &Detection::image));
    for (const std::vector<std::size_t>& hosted :
         {std::vector<std::size_t>{1, 1, 1, 1}, {2, 2}, {0, 3, 1}, {4, 0, 0, 0, 0}, {3, 1}}) {
        for (const std::int64_t chunk_images : {1, 2, 5, 64}) {
            EXPECT_EQ(fused_by(models, hosted, GetParam(), chunk_images), alone)
                << hosted.size() << " ranks, " << chunk_images << " images";
        }
    }
}

TEST_P(FusionOverRanks, OfAllRanksIsThatOfEachImageByItself) {
    const std::vector<Detections> models = four_models();
    Detections wanted;
    for (std::int64_t image = 0; image < 23; ++image) {
        std::vector<MemberDetection> pooled;
        for (std::int32_t member = 0; member < 4; ++member) {
            for (const Detection& one : models[static_cast<std::size_t>(member)]) {
                if (one.image == image) pooled.push_back({member, one});
            }
        }
        const Detections fused =
            fuse_image(pooled, std::vector{1.0, 2.0, 3.0, 4.0}, {.method = GetParam()});
        wanted.insert(wanted.end(), fused.begin(), fused.end());
    }
    EXPECT_EQ(fused_by(models, {1, 2, 1}, GetParam(), 3), wanted);
}

INSTANTIATE_TEST_SUITE_P(Both, FusionOverRanks,
                         testing::Values(FusionMethod::weighted_fusion, FusionMethod::suppression));

TEST(FuseDetections, SendsNoMoreThanARoundAtATime) {
    const Detections all = random_detections({.images = 40, .detections = 400, .scores = 3}, 1);
    const std::size_t largest = run_members(2, [&](comm::Communicator& ranks) {
        const std::vector<Member> mine{{all}};
        fuse_detections(ranks, mine, 40, {}, 2);
    });
    EXPECT_LT(largest, 2 * 30 * sizeof(MemberDetection));  // 10 for each image and model on average
}

TEST(FuseDetections, RejectsOnEveryRankWhatDoesNotFit) {
    const Detections fine{{0, 1, 0.5, kSameBox}, {1, 1, 0.5, kSameBox}};
    const Detections unordered{{1, 1, 0.5, kSameBox}, {0, 1, 0.5, kSameBox}};
    const Detections beyond{{2, 1, 0.5, kSameBox}};
    const auto refusals = [&](const Detections& second, std::int64_t images, double weight) {
        std::vector<int> codes(2);
        run_members(2, [&](comm::Communicator& ranks) {
            const bool is_second = ranks.rank() == 1;
            const std::vector<Member> mine{{is_second ? second : fine, is_second ? weight : 1}};
            try {
                fuse_detections(ranks, mine, is_second ? images : 2, {});
            } catch (const Error& error) {
                codes[static_cast<std::size_t>(ranks.rank())] = static_cast<int>(error.code());
            }
        });
        return codes;
    };
    EXPECT_EQ(refusals(fine, 2, 1), (std::vector{0, 0}));
    EXPECT_EQ(refusals(unordered, 2, 1), (std::vector{1, 1}));
    EXPECT_EQ(refusals(beyond, 2, 1), (std::vector{1, 1}));
    EXPECT_EQ(refusals(fine, 3, 1), (std::vector{1, 1}));
    EXPECT_EQ(refusals(fine, 2, 0), (std::vector{1, 1}));
    const auto alone = comm::make_self_communicator();
    EXPECT_THROW(fuse_detections(*alone, {}, 2, {}), Error);
    EXPECT_THROW(fuse_detections(*alone, std::vector<Member>{{fine}}, 2, {}, 0), Error);
}

/// The interval if `hosted[r]` of the models are on rank r.
std::optional<Interval> interval_of(const std::vector<Detections>& models,
                                    const std::vector<std::size_t>& hosted,
                                    const DetectionTruth& truth,
                                    FusionMethod method = FusionMethod::weighted_fusion) {
    std::optional<Interval> result;
    run_members(static_cast<int>(hosted.size()), [&](comm::Communicator& ranks) {
        const auto rank = static_cast<std::ptrdiff_t>(ranks.rank());
        const auto first = std::accumulate(hosted.begin(), hosted.begin() + rank, std::size_t{0});
        const auto begin = models.begin() + static_cast<std::ptrdiff_t>(first);
        const std::vector<Member> mine(
            begin, begin + static_cast<std::ptrdiff_t>(hosted[static_cast<std::size_t>(rank)]));
        const MemberDraws draws = draw_members(static_cast<int>(models.size()), 3);
        const auto got = bootstrap_detections(ranks, {mine, static_cast<int>(first), draws}, truth,
                                              kAp50Overlap, {.method = method});
        if (rank == 0) {
            result = got;
        } else {
            EXPECT_FALSE(got);
        }
    });
    return result;
}

TEST(DetectionBootstrap, OfEqualMembersCoversTheImagesOnly) {
    const Detections detections = random_detections({.images = 12, .detections = 80}, 0);
    DetectionTruth truth{12, 3, {}};
    for (std::size_t index = 0; index < detections.size(); index += 3) {
        truth.boxes.push_back(
            {detections[index].image, detections[index].category, detections[index].box});
    }
    const auto one = interval_of({detections}, {1}, truth, FusionMethod::suppression);
    const auto three =
        interval_of({detections, detections, detections}, {3}, truth, FusionMethod::suppression);
    ASSERT_TRUE(one && three);
    EXPECT_LT(one->low, one->high);
    EXPECT_EQ(one->low, three->low);
    EXPECT_EQ(one->high, three->high);
}

TEST(DetectionBootstrap, CoversTheInfluenceOfOneMember) {
    DetectionTruth truth{10, 1, {}};
    Detections right;
    for (std::int64_t image = 0; image < 10; ++image) {
        truth.boxes.push_back({image, 1, kSameBox});
        right.push_back({image, 1, 0.9, kSameBox});
    }
    const auto both = interval_of({right, right}, {2}, truth);
    const auto one = interval_of({right, {}}, {2}, truth);
    ASSERT_TRUE(both && one);
    EXPECT_DOUBLE_EQ(both->low, 1);
    EXPECT_EQ(one->low, 0) << "in a quarter of all draws only the blind member is drawn";
    EXPECT_DOUBLE_EQ(one->high, 1);
}

TEST(DetectionBootstrap, DoesNotDependOnTheRanksThatHostTheModels) {
    const RandomSet set{.images = 12, .boxes = 40, .detections = 80};
    const std::vector<Detections> models{random_detections(set, 0), random_detections(set, 1),
                                         random_detections(set, 2)};
    const DetectionTruth truth = random_truth(set, 0);
    const auto alone = interval_of(models, {3}, truth);
    ASSERT_TRUE(alone);
    EXPECT_LT(alone->low, alone->high);
    for (const std::vector<std::size_t>& hosted :
         {std::vector<std::size_t>{1, 1, 1}, {2, 1}, {0, 3}}) {
        const auto over_ranks = interval_of(models, hosted, truth);
        ASSERT_TRUE(over_ranks);
        EXPECT_EQ(over_ranks->low, alone->low);
        EXPECT_EQ(over_ranks->high, alone->high);
    }
}

TEST(DetectionBootstrap, ReportsWhenItWouldTakeTooLong) {
    EXPECT_EQ(reason_to_skip_draws(draw_members(4, 1), 1000), "");
    EXPECT_EQ(reason_to_skip_draws(draw_members(1, 1), 200'000),
              "1 fusions of the detections in 200000 images are too many");
    EXPECT_EQ(draw_members(2, 1).weights.size(), 3U);
}

}  // namespace
}  // namespace hpcai::evaluation
