// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>

#include <hpcai/storage/npy.hpp>
#include <hpcai/workloads/workload.hpp>

#include "storage/temporary_folder.hpp"

namespace hpcai::workloads {
namespace {

class Confusions : public testing::Test {
protected:
    /// Stores an ensemble that predicts `predicted[i]` for sample i; -1: a row with a NaN.
    void store(const std::vector<std::int32_t>& labels, const std::vector<int>& predicted,
               const std::string& names) {
        std::vector<float> scores;
        for (const int one : predicted) {
            for (int index = 0; index < workload_.classes; ++index)
                scores.push_back(one < 0 ? NAN : index == one ? 0.9F : 0.1F);
        }
        const std::int64_t samples = std::ssize(labels);
        storage::write_npy(folder_ / "labels.npy", std::span(labels), {samples});
        storage::write_npy(folder_ / "ensemble.npy", std::span<const float>(scores),
                           {samples, workload_.classes});
        std::ofstream(folder_ / "samples.txt") << names;
    }
    /// Returns lines such as "cat dog 2".
    std::string found() const {
        std::string text;
        for (const ConfusionRecord& one : find_confusions(workload_, folder_.path()))
            text += one.label + " " + one.predicted + " " + std::to_string(one.samples) + "\n";
        return text;
    }

    storage::TemporaryFolder folder_;
    config::WorkloadConfig workload_{.classes = 3};
};

TEST_F(Confusions, CountWrongClassesByTheFoldersOfSamples) {
    store({0, 0, 0, 1, 2, 2, -1, 1}, {0, 1, 2, 0, 0, 0, 2, -1},
          "a/cat/1\na/cat/2\na/cat/3\ndog/1\nfox/1\nfox/2\nfox/3\ndog/2\n");
    EXPECT_EQ(found(), "2 fox 0 a/cat 2\n0 a/cat 1 dog 1\n0 a/cat 2 fox 1\n1 dog 0 a/cat 1\n");
}

TEST_F(Confusions, HaveNoNamesIfTheClassesShareAFolder) {
    store({0, 1, 2}, {1, 2, 2}, "synthetic/0\nsynthetic/1\nsynthetic/2\n");
    EXPECT_EQ(found(), "0 1 1\n1 2 1\n");
}

TEST_F(Confusions, AreTheTenMostFrequent) {
    workload_.classes = 12;
    std::vector<std::int32_t> labels(11);
    std::vector<int> predicted;
    for (int one = 1; one <= 11; ++one) predicted.push_back(one);
    labels.push_back(0);
    predicted.push_back(11);
    store(labels, predicted, "cat/1\n");
    const auto confusions = find_confusions(workload_, folder_.path());
    ASSERT_EQ(confusions.size(), 10U);
    EXPECT_EQ(confusions[0].predicted, "11");
    EXPECT_EQ(confusions[0].samples, 2);
}

TEST_F(Confusions, AreOnlyThoseOfUndamagedClassifiers) {
    EXPECT_EQ(found(), "") << "no file";
    store({0}, {1}, "cat/1\n");
    EXPECT_EQ(found(), "0 cat 1 1\n");
    std::filesystem::resize_file(folder_ / "ensemble.npy", 100);
    EXPECT_EQ(found(), "") << "a damaged file";
    store({0}, {1}, "cat/1\n");
    workload_.classes = 4;
    EXPECT_EQ(found(), "") << "another number of classes";
    workload_.classes = 3;
    workload_.kind = config::WorkloadKind::extreme_weather;
    EXPECT_EQ(found(), "") << "a detector";
}

}  // namespace
}  // namespace hpcai::workloads
