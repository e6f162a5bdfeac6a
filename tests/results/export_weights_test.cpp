// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <hpcai/results/export_weights.hpp>

#include "storage/temporary_folder.hpp"

/// Rejected exports; tests/end_to_end have successful ones.
namespace hpcai::results {
namespace {

using storage::error_of;

class ExportWeights : public testing::Test {
protected:
    ExportWeights() { std::filesystem::create_directories(result_ / "groups/0"); }

    void write(const std::string& name, const std::string& text) const {
        std::ofstream(result_ / name) << text;
    }
    void expect_refused(ExitCode code, int group, const std::string& part) const {
        const std::string message =
            error_of(code, [&] { export_weights(result_, group, output_); });
        EXPECT_NE(message.find(part), std::string::npos) << message;
        EXPECT_FALSE(std::filesystem::exists(output_)) << message;
    }

    storage::TemporaryFolder folder_;
    std::filesystem::path result_ = folder_ / "result";
    std::filesystem::path output_ = folder_ / "weights.safetensors";
};

TEST_F(ExportWeights, RejectsAFolderThatIsNoResult) {
    expect_refused(ExitCode::usage, 0, "config.yaml");
}

TEST_F(ExportWeights, RejectsAnInvalidConfiguration) {
    write("config.yaml", "run: [");
    expect_refused(ExitCode::usage, 0, "config.yaml");
}

TEST_F(ExportWeights, RejectsAGroupWithoutWeights) {
    write("config.yaml", "workload: {classes: 4}\n");
    expect_refused(ExitCode::usage, 0, "--group 0");
    expect_refused(ExitCode::usage, 7, "--group 7");
    expect_refused(ExitCode::usage, -1, "--group -1");
}

TEST_F(ExportWeights, NamesTheSettingThatDeletedTheWeights) {
    write("config.yaml", "run: {keep_weights: false}\nworkload: {classes: 4}\n");
    expect_refused(ExitCode::usage, 0, "run.keep_weights is false");
}

TEST_F(ExportWeights, RejectsDamagedWeights) {
    write("config.yaml", "workload: {classes: 4}\n");
    write("groups/0/weights.safetensors", "no tensors at all");
    expect_refused(ExitCode::data, 0, "groups/0/weights.safetensors");
}

}  // namespace
}  // namespace hpcai::results
