// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <gtest/gtest.h>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/data/sample_set.hpp>

namespace hpcai::data {
namespace {

std::string digest_of(int training_samples, int validation_samples, int classes = 4) {
    config::Config config;
    config.data.kind = config::DataKind::synthetic;
    config.data.synthetic_samples = training_samples;
    config.data.synthetic_validation_samples = validation_samples;
    config.workload.classes = classes;
    const auto alone = comm::make_self_communicator();
    return make_sample_sets(config, *alone).sha256;
}

TEST(SamplesDigest, IsThatOfNamesAndClassesOfBothSets) {
    const std::string digest = digest_of(16, 8);
    EXPECT_EQ(digest.size(), 64U);
    EXPECT_EQ(digest_of(16, 8), digest);
    const std::set<std::string> all{digest, digest_of(17, 8), digest_of(16, 9), digest_of(8, 16),
                                    digest_of(16, 8, 3)};
    EXPECT_EQ(all.size(), 5U);
}

}  // namespace
}  // namespace hpcai::data
