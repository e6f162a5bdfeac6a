// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/evaluation/detection_ensemble.hpp>

#include "evaluation/random_detections.hpp"
#include "world.hpp"

namespace hpcai::evaluation {
namespace {

using Detections = std::vector<Detection>;

constexpr RandomSet kSet{.images = 50, .detections = 2000};

/// Returns one rank's part of twelve models; all of them for one rank.
std::vector<Detections> models_of(int rank, int ranks) {
    std::vector<Detections> models;
    for (int model = 12 * rank / ranks; model < 12 * (rank + 1) / ranks; ++model) {
        models.push_back(random_detections(kSet, static_cast<std::uint32_t>(model)));
    }
    return models;
}

Detections fused(comm::Communicator& ranks, const std::vector<Detections>& models,
                 FusionMethod method) {
    std::vector<Member> mine;
    for (const Detections& model : models) mine.push_back({model});
    return fuse_detections(ranks, mine, kSet.images, {.method = method}, 7);
}

class FusionOverMpi : public testing::TestWithParam<FusionMethod> {};

TEST_P(FusionOverMpi, IsThatOfOneProcess) {
    comm::Communicator& everyone = mpi_tests::world().everyone;
    const Detections got = fused(everyone, models_of(everyone.rank(), everyone.size()), GetParam());
    const auto alone = comm::make_self_communicator();
    const Detections wanted = fused(*alone, models_of(0, 1), GetParam());
    EXPECT_GT(wanted.size(), 50U);
    EXPECT_EQ(got, everyone.rank() == 0 ? wanted : Detections());
}

INSTANTIATE_TEST_SUITE_P(Both, FusionOverMpi,
                         testing::Values(FusionMethod::weighted_fusion, FusionMethod::suppression));

}  // namespace
}  // namespace hpcai::evaluation
