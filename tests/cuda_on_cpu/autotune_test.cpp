// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "device/cuda/cuda_device.hpp"
#include "storage/temporary_folder.hpp"

/// The stand-in for cuDNN offers 17 plans: loops0 to loops12 refuse, loops13 wants too much memory,
/// loops14 and loops16 are right, loops15 gives wrong results.
namespace hpcai::device {
namespace {

class Autotune : public testing::Test {
protected:
    /// The plans that stand in the file after a convolution was built for training.
    std::map<std::string, std::string> plans_after(const CudaDeviceOptions& options) const {
        const auto device = cuda::make_cuda_device(options);
        const ops::Convolution convolution{
            .input = {2, 6, 6, 8}, .filters = 8, .kernel = 3, .padding = 1};
        EXPECT_NE(device->build(convolution, {.compute = tensor::DType::f16}), nullptr);
        std::ifstream file(file_);
        if (!file) return {};
        return nlohmann::json::parse(file)["plans"];
    }
    void write(const nlohmann::json& json) const { std::ofstream(file_) << json.dump(); }

    storage::TemporaryFolder folder_;
    std::string file_ = (folder_ / "plans.json").string();
};

TEST_F(Autotune, TakesPlansThatAgreeWithTheFirstAndWritesThemDown) {
    const auto plans = plans_after({.plan_cache = file_});
    EXPECT_EQ(plans.size(), 3U) << "output, gradients of the filters and of the image";
    for (const auto& [problem, plan] : plans) {
        EXPECT_THAT(plan, testing::AnyOf("loops14", "loops16")) << problem;
        EXPECT_THAT(problem, testing::HasSubstr("2x6x6x8"));
    }
}

TEST_F(Autotune, KeepsThePlansThatItKnows) {
    const auto timed = plans_after({.plan_cache = file_});
    nlohmann::json other = nlohmann::json::parse(std::ifstream(file_));
    for (auto& [problem, plan] : other["plans"].items()) {
        plan = timed.at(problem) == "loops14" ? "loops16" : "loops14";
    }
    write(other);
    EXPECT_EQ(nlohmann::json(plans_after({.plan_cache = file_})), other["plans"]);
}

TEST_F(Autotune, TimesNothingWhereItIsOffOrBitsMustNotDependOnIt) {
    EXPECT_TRUE(plans_after({.autotune = false, .plan_cache = file_}).empty());
    EXPECT_TRUE(plans_after({.deterministic = true, .plan_cache = file_}).empty());
}

TEST_F(Autotune, CountsWhatItTimesAndHowLongThatTakes) {
    const ops::Convolution convolution{
        .input = {2, 6, 6, 8}, .filters = 8, .kernel = 3, .padding = 1};
    const auto counted = [&](const CudaDeviceOptions& options) {
        const auto device = cuda::make_cuda_device(options);
        const auto before = tuning_of(*device);
        EXPECT_TRUE(!before || (before->convolutions == 0 && before->seconds == 0));
        device->build(convolution, {.compute = tensor::DType::f16});
        return tuning_of(*device);
    };
    const auto first = counted({.plan_cache = file_});
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->convolutions, 3) << "output, gradients of the filters and of the image";
    EXPECT_GT(first->seconds, 0);
    const auto second = counted({.plan_cache = file_});
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(second->convolutions, 0) << "all are known";
    EXPECT_EQ(second->seconds, 0);
    EXPECT_FALSE(counted({.autotune = false}).has_value());
    EXPECT_FALSE(counted({.deterministic = true}).has_value());
}

TEST_F(Autotune, NamesAFileThatHoldsNoPlans) {
    write("no plans");
    const auto device = cuda::make_cuda_device({.plan_cache = file_});
    EXPECT_THAT(device->description(), testing::HasSubstr(file_));
}

}  // namespace
}  // namespace hpcai::device
