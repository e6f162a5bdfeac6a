// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/data/generate.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/verification/verdict.hpp>

#include "data/fixtures.hpp"

/// Problem class mini: the shipped configurations with the generated data keep the rules.
namespace hpcai::verification {
namespace {

namespace fs = std::filesystem;
using testing::StartsWith;

const std::vector<std::string> kNone;
constexpr std::array kConfigurations{"mini_image_classification.yaml", "mini_extreme_weather.yaml"};

config::Config configured(const std::string& name) {
    const fs::path file = fs::path(std::getenv("HPCAI500_SOURCE_DIR")) / "configs" / name;
    return config::parse(config::read_file(file.string()), name, {});
}

/// Generated once for all tests of this file.
class MiniProblem : public testing::Test {
protected:
    static void SetUpTestSuite() {
        folder_ = std::make_unique<data::test::TemporaryFolder>();
        data::generate_mini(folder_->path() / "mini-data", 2);
    }
    static void TearDownTestSuite() { folder_.reset(); }

    std::vector<std::string> broken_with_data(const std::string& name) const {
        config::Config config = configured(name);
        for (std::string* path : {&config.data.path, &config.data.validation_path}) {
            *path = (folder_->path() / *path).string();
        }
        const auto alone = comm::make_self_communicator();
        const data::SampleSets samples = data::make_sample_sets(config, *alone);
        VerdictFacts facts;
        facts.training_samples = samples.training->samples();
        facts.validation_samples = samples.validation->samples();
        facts.samples_sha256 = samples.sha256;
        facts.disqualifications = samples.disqualifications;
        return broken_rules(config, facts);
    }

    static std::unique_ptr<data::test::TemporaryFolder> folder_;
};

std::unique_ptr<data::test::TemporaryFolder> MiniProblem::folder_;

TEST_F(MiniProblem, IsThatOfTheShippedConfigurationsAndTheGeneratedData) {
    for (const char* name : kConfigurations) {
        EXPECT_EQ(rules_broken_by_settings(configured(name)), kNone) << name;
        EXPECT_EQ(broken_with_data(name), kNone) << name;
    }
}

TEST_F(MiniProblem, IsGeneratedOnce) {
    const fs::path folder = folder_->path() / "mini-data";
    EXPECT_THAT(data::generate_mini(folder, 2),
                testing::ElementsAre(folder / "photographs", folder / "weather/train.h5",
                                     folder / "weather/test.h5"));
}

TEST_F(MiniProblem, IsNotThatOfAnEditedPicture) {
    const fs::path set = folder_->path() / "mini-data/photographs/train";
    const fs::path picture = fs::recursive_directory_iterator(set)->path() / "000003.jpg";
    const fs::path kept = folder_->path() / "kept.jpg";
    fs::copy_file(picture, kept);
    std::ofstream(picture, std::ios::app) << '\0';
    const auto broken = broken_with_data(kConfigurations[0]);
    ASSERT_EQ(broken.size(), 1U);
    EXPECT_THAT(broken.front(), StartsWith("rule 1: the SHA-256 of the samples must be "));
    fs::remove(picture);
    fs::rename(kept, picture);
    EXPECT_EQ(broken_with_data(kConfigurations[0]), kNone);
}

TEST(MiniRules, KnowTheSeedsOfAllRunsAndTheNumberOfRunsThatARankNeeds) {
    config::Config config = configured(kConfigurations[0]);
    config.run.seed = 2;
    EXPECT_THAT(rules_broken_by_settings(config),
                testing::ElementsAre("rule 3: run.seed must be 1, 2 or 3, is 4"));
    config.run.repeat = 2;
    EXPECT_EQ(rules_broken_by_settings(config), kNone);
    const std::string too_few = "run.repeat is 2, and the rules require 3 runs";
    EXPECT_TRUE(describe_missing_for_rank(config).ends_with("; " + too_few));
    for (std::string config::SubmissionConfig::*key :
         {&config::SubmissionConfig::system_name, &config::SubmissionConfig::organization,
          &config::SubmissionConfig::hardware, &config::SubmissionConfig::operating_system,
          &config::SubmissionConfig::communication_libraries,
          &config::SubmissionConfig::acceleration_libraries})
        config.submission.*key = "x";
    EXPECT_EQ(describe_missing_for_rank(config), "not rankable: " + too_few);
    config.run.repeat = 3;
    EXPECT_EQ(describe_missing_for_rank(config), "");
}

TEST(MiniRules, RankNoResumedRun) {
    config::Config config = configured(kConfigurations[0]);
    EXPECT_THAT(describe_resumed(config),
                StartsWith("not rankable: the time between the launches"));
    config.run.level = config::Level::custom;
    EXPECT_EQ(describe_resumed(config), "");
}

TEST(MiniRules, FixTheNumberOfTrainingSamples) {
    for (const char* name : kConfigurations) {
        config::Config config = configured(name);
        EXPECT_EQ(required_training_samples(config).value_or(0),
                  name == kConfigurations[0] ? 1536 : 512)
            << name;
        config.workload.problem_class = config::ProblemClass::official;
        EXPECT_EQ(required_training_samples(config), std::nullopt) << "may be other data";
    }
    config::Config config = configured(kConfigurations[0]);
    config.data.kind = config::DataKind::synthetic;
    EXPECT_EQ(required_training_samples(config), std::nullopt);
}

TEST(MiniRules, RejectLessWorkAndASmallerModel) {
    for (const char* name : kConfigurations) {
        config::Config config = configured(name);
        config.workload.epochs -= 1;
        const int width = config.workload.backbone_width;
        config.workload.backbone_width = width / 2;
        config.workload.target_quality = 0.1;
        config.run.seed = 4;
        const auto broken = rules_broken_by_settings(config);
        ASSERT_EQ(broken.size(), 4U) << name;
        EXPECT_THAT(broken[0], StartsWith("rule 3: run.seed must be 1, 2 or 3, is 4"));
        EXPECT_EQ(broken[1], fmt::format("rule 2: workload.backbone_width must be {}, is {}", width,
                                         width / 2));
        EXPECT_THAT(broken[2], StartsWith("rule 3: workload.epochs"));
        EXPECT_THAT(broken[3], StartsWith("rule 4: workload.target_quality"));
    }
}

}  // namespace
}  // namespace hpcai::verification
