// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/error.hpp>

#include "device/cuda/cuda_device.hpp"
#include "simt/libraries.hpp"
#include "storage/temporary_folder.hpp"

/// The stand-in for cuDNN offers 17 plans. It rejects loops0 to loops12, and loops13 needs too much
/// memory. loops14 and loops16 give right results, loops15 wrong ones unless a test changes that.
namespace hpcai::device {
namespace {

class Autotune : public testing::Test {
protected:
    ~Autotune() override { simt::set_bad_plans({}); }

    /// Returns the plans in the file after a convolution was built for training.
    std::map<std::string, std::string> plans_after(const CudaDeviceOptions& options) const {
        const auto device = cuda::make_cuda_device(options);
        const ops::Convolution convolution{
            .input = {2, 6, 6, 8}, .filters = 8, .kernel = 3, .padding = 1};
        EXPECT_NE(device->build(convolution, {.compute = tensor::DType::f16}), nullptr);
        return std::filesystem::exists(file_) ? written()["plans"] : nlohmann::json::object();
    }
    nlohmann::json written() const { return nlohmann::json::parse(std::ifstream(file_)); }
    void write(const nlohmann::json& json) const { std::ofstream(file_) << json.dump(); }

    storage::TemporaryFolder folder_;
    std::string file_ = (folder_ / "plans.json").string();
};

TEST_F(Autotune, TakesPlansThatAgreeWithOthersAndStoresThem) {
    const auto plans = plans_after({.plan_cache = file_});
    EXPECT_EQ(plans.size(), 3U) << "output, gradients of the filters and of the image";
    for (const auto& [problem, plan] : plans) {
        EXPECT_THAT(plan, testing::AnyOf("loops14", "loops16")) << problem;
        EXPECT_THAT(problem, testing::HasSubstr("2x6x6x8"));
    }
}

TEST_F(Autotune, RejectsTheFirstPlanIfItIsWrong) {
    simt::set_bad_plans({.wrong = 14});
    for (const auto& [problem, plan] : plans_after({.plan_cache = file_})) {
        EXPECT_THAT(plan, testing::AnyOf("loops15", "loops16")) << problem;
    }
}

TEST_F(Autotune, ComparesTheFirstPlanEvenIfItTakesLongToCompile) {
    simt::set_bad_plans({.wrong = 14, .bulky = 14});
    for (const auto& [problem, plan] : plans_after({.plan_cache = file_})) {
        EXPECT_THAT(plan, testing::AnyOf("loops15", "loops16")) << problem;
    }
}

TEST_F(Autotune, StoresTheTimeOfEveryPlan) {
    const auto plans = plans_after({.plan_cache = file_});
    const nlohmann::json timings = written()["timings"];
    EXPECT_EQ(timings.size(), plans.size());
    for (const auto& [problem, plan] : plans) {
        const nlohmann::json& tried = timings[problem];
        ASSERT_EQ(tried.size(), 3U) << problem;
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(tried[i]["name"], "loops" + std::to_string(14 + i));
            EXPECT_EQ(tried[i]["agrees"], i != 1);
            EXPECT_EQ(tried[i]["workspace_bytes"], i == 2 ? 0 : 768);
        }
        const bool last_is_faster = tried[2]["seconds"] < tried[0]["seconds"];
        EXPECT_EQ(plan, last_is_faster ? "loops16" : "loops14");
    }
}

TEST_F(Autotune, TimesASlowPlanOnceAndDoesNotCompareIt) {
    simt::set_bad_plans({.wrong = -1, .slow = 16});
    plans_after({.plan_cache = file_});
    const nlohmann::json timings = written()["timings"];
    EXPECT_EQ(timings.size(), 3U);
    for (const auto& [problem, tried] : timings.items()) {
        ASSERT_EQ(tried.size(), 3U) << problem;
        EXPECT_EQ(tried[2]["name"], "loops16");
        EXPECT_GE(tried[2]["seconds"], 1);
        EXPECT_TRUE(tried[2]["agrees"].is_null());
    }
}

TEST_F(Autotune, NamesAPlanThatBreaksTheDeviceAndNeverRunsItAgain) {
    simt::set_bad_plans({.wrong = -1, .fatal = 14});
    for (int pass = 0; pass < 3; ++pass) {
        const std::string message =
            storage::error_of(ExitCode::internal, [&] { plans_after({.plan_cache = file_}); });
        EXPECT_THAT(message, testing::HasSubstr("loops14"));
        EXPECT_THAT(message, testing::HasSubstr("2x6x6x8"));
        EXPECT_EQ(written()["barred"].size(), pass + 1U) << "one more at every start";
    }
    for (const auto& [problem, plan] : plans_after({.plan_cache = file_})) {
        EXPECT_THAT(plan, testing::AnyOf("loops15", "loops16")) << problem;
    }
}

TEST_F(Autotune, KeepsThePlansThatItKnows) {
    const auto timed = plans_after({.plan_cache = file_});
    nlohmann::json other = written();
    for (auto& [problem, plan] : other["plans"].items()) {
        plan = timed.at(problem) == "loops14" ? "loops16" : "loops14";
    }
    write(other);
    EXPECT_EQ(nlohmann::json(plans_after({.plan_cache = file_})), other["plans"]);
}

TEST_F(Autotune, TimesAgainWhereAKnownPlanIsGoneOrRejects) {
    plans_after({.plan_cache = file_});
    for (const char* gone : {"loops99", "loops0"}) {
        nlohmann::json other = written();
        for (auto& [problem, plan] : other["plans"].items()) plan = gone;
        write(other);
        for (const auto& [problem, plan] : plans_after({.plan_cache = file_})) {
            EXPECT_THAT(plan, testing::AnyOf("loops14", "loops16")) << problem;
        }
    }
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
        const auto before = device->tuning();
        EXPECT_TRUE(!before || (before->convolutions == 0 && before->seconds == 0));
        device->build(convolution, {.compute = tensor::DType::f16});
        return device->tuning();
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
