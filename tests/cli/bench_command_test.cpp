// SPDX-License-Identifier: Apache-2.0
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "child_process.hpp"

namespace hpcai::cli {
namespace {

/// Returns oneDNN's verbose lines of the convolutions that it ran.
std::string convolutions_of(const Outcome& outcome) {
    std::istringstream lines(outcome.out);
    std::string found;
    for (std::string line; std::getline(lines, line);) {
        if (line.find(",exec,cpu,convolution,") != std::string::npos) found += line + "\n";
    }
    return found;
}

class BenchOnInstructions : public testing::TestWithParam<const char*> {};

TEST_P(BenchOnInstructions, LeavesNoConvolutionToReferenceLoops) {
    const Outcome outcome =
        run({"bench", "--config", source("configs/smoke.yaml"), "--steps", "1", "--set",
             "device.kind=cpu", "--set", "training.precision=fp32", "--set",
             "training.batch_size=4", "--set", "workload.image_size=32"},
            {"ONEDNN_VERBOSE=1", std::string("ONEDNN_MAX_CPU_ISA=") + GetParam()});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    const std::string convolutions = convolutions_of(outcome);
    EXPECT_NE(convolutions.find("backward_weights"), std::string::npos) << outcome.out;
    EXPECT_EQ(convolutions.find(",ref:"), std::string::npos) << convolutions;
}

INSTANTIATE_TEST_SUITE_P(All, BenchOnInstructions, testing::Values("ALL", "AVX2"));

}  // namespace
}  // namespace hpcai::cli
