// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/storage/file.hpp>

#include "child_process.hpp"
#include "storage/temporary_folder.hpp"

namespace hpcai::cli {
namespace {

TEST(ValidateCommand, EndsWithOneLineAndWritesTheSameResults) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "validate.json").string();
    const Outcome outcome =
        run({"validate", "--config", source("configs/climate_segmentation_quickstart.yaml"),
             "--quick", "--runs", "1", "--output", file, "--set", "device.kind=cpu", "--set",
             "workload.image_size=64", "--set", "workload.image_width=96"},
            {});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error << outcome.out;
    const std::string last = outcome.out.substr(outcome.out.rfind("VALIDATE "));
    EXPECT_TRUE(last.starts_with("VALIDATE PASSED: ")) << last;
    const auto json = nlohmann::json::parse(storage::read_file_text(file, std::size_t{1} << 20));
    EXPECT_TRUE(json["passed"].get<bool>());
    EXPECT_NE(last.find(std::to_string(json["operations"].size()) + " operations"),
              std::string::npos);
    EXPECT_NE(last.find(" on " + json["device"].get<std::string>() + "; worst "), std::string::npos)
        << last;
}

TEST(ValidateCommand, RejectsAnOutputThatIsNoValidation) {
    const TemporaryFolder folder;
    storage::write_file_durably(folder.path() / "notes.txt", "notes");
    const Outcome outcome = run({"validate", "--config", source("configs/smoke.yaml"), "--output",
                                 (folder.path() / "notes.txt").string()},
                                {});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_NE(outcome.error.find("validate: --output"), std::string::npos) << outcome.error;
}

}  // namespace
}  // namespace hpcai::cli
