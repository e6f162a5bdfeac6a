// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/data/sample_set.hpp>

#include "storage/temporary_folder.hpp"

namespace hpcai::data {
namespace {

Error refusal_of(const config::Config& config) {
    const auto alone = comm::make_self_communicator();
    try {
        make_sample_sets(config, *alone);
    } catch (const Error& error) {
        return error;
    }
    return {ExitCode::ok, ""};
}

TEST(SampleSets, NameTheKeyOfAPathThatIsNotThereAndWhatItIsRelativeTo) {
    const storage::TemporaryFolder folder;
    config::Config config;
    config.data.kind = config::DataKind::image_folder;
    config.data.path = "set/train";
    config.data.validation_path = folder.path().string();
    const Error relative = refusal_of(config);
    EXPECT_EQ(relative.code(), ExitCode::data);
    EXPECT_EQ(relative.what(), "data.path: 'set/train' does not exist in the working directory '" +
                                   std::filesystem::current_path().string() + "'");
    config.data.path = folder.path().string();
    config.data.validation_path = (folder / "val").string();
    EXPECT_EQ(refusal_of(config).what(),
              "data.validation_path: '" + (folder / "val").string() + "' does not exist");
}

TEST(SampleSets, NameTheCommandThatGeneratesTheSamplesOfProblemClassMini) {
    config::Config config;
    config.workload.problem_class = config::ProblemClass::mini;
    config.data.kind = config::DataKind::image_folder;
    config.data.path = "/no/such";
    EXPECT_STREQ(refusal_of(config).what(),
                 "data.path: '/no/such' does not exist; `hpcai500 data generate mini` generates "
                 "these samples");
}

}  // namespace
}  // namespace hpcai::data
