// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/acceptance.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/error.hpp>

#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cudnn_choice.hpp"
#include "device/cuda/plan_cache.hpp"
#include "simt/libraries.hpp"
#include "storage/temporary_folder.hpp"

namespace hpcai::device::cuda {
namespace {

using P = ConvolutionPass;

const ops::Convolution kConvolution{{2, 5, 4, 16}, 8, 3, 1, 1, true};
const KernelOptions kHalf{.compute = DType::f16};
constexpr const char* kKey = "joined sums 2x5x4x16 filters=8 kernel=3 stride=1 padding=1 fp16";

TEST(Acceptance, TimesWithAutotuneAndRemembersWhichIsFaster) {
    const auto device = make_cuda_device({.autotune = true});
    const bool accepted = device->accepts(kConvolution, kHalf);
    EXPECT_EQ(context_of(*device).plans->find(kKey), accepted ? "joined" : "apart");
    EXPECT_EQ(device->accepts(kConvolution, kHalf), accepted);
}

TEST(Acceptance, ComparesBothFormsWithTheirFastestPlansAndStoresAll) {
    const storage::TemporaryFolder folder;
    const std::string file = (folder / "plans.json").string();
    const auto device = make_cuda_device({.autotune = true, .plan_cache = file});
    device->accepts(kConvolution, kHalf);
    const auto written = nlohmann::json::parse(std::ifstream(file));
    EXPECT_TRUE(written["plans"].contains(kKey));
    const ConvolutionShape shape = convolution_shape(kConvolution, kHalf);
    for (int pass = 0; pass < kConvolutionPasses; ++pass) {
        const std::string problem = plan_key(shape, static_cast<P>(pass));
        EXPECT_TRUE(written["plans"].contains(problem)) << problem;
    }
}

TEST(Acceptance, EndsWhereAPlanBreaksTheDevice) {
    simt::set_bad_plans({.fatal = 14});
    const std::string message = storage::error_of(ExitCode::internal, [] {
        make_cuda_device({.autotune = true})->accepts(kConvolution, kHalf);
    });
    simt::set_bad_plans({});
    EXPECT_THAT(message, testing::HasSubstr("loops14"));
    EXPECT_THAT(message, testing::HasSubstr("2x5x4x16"));
}

TEST(Acceptance, FollowsWhatIsRemembered) {
    for (const std::string remembered : {"joined", "apart"}) {
        const auto device = make_cuda_device({.autotune = true});
        context_of(*device).plans->insert(kKey, remembered);
        EXPECT_EQ(device->accepts(kConvolution, kHalf), remembered == "joined");
    }
}

TEST(Acceptance, ForgetsThatItFusedIfThePlansWereExcludedLater) {
    const std::string problem =
        plan_key(convolution_shape(kConvolution, kHalf), P::forward_with_statistics);
    const auto device = make_cuda_device({.autotune = true});
    PlanCache& plans = *context_of(*device).plans;
    plans.insert(kKey, "joined");
    for (int plan = 0; plan < 17; ++plan) plans.bar(problem, "loops" + std::to_string(plan));
    EXPECT_FALSE(device->accepts(kConvolution, kHalf));
    EXPECT_EQ(plans.find(kKey), "apart");
}

TEST(Acceptance, TakesWhatCudnnHasWithoutAutotune) {
    const auto device = make_cuda_device({.autotune = false});
    EXPECT_TRUE(device->accepts(kConvolution, kHalf));
    EXPECT_EQ(context_of(*device).plans->find(kKey), "");
}

TEST(Acceptance, RejectsWhatTheDeviceDoesNotRunAndForgetsIt) {
    for (const P failing : {P::forward_with_statistics, P::forward}) {
        for (const bool autotune : {true, false}) {
            const auto device = make_cuda_device({.autotune = autotune});
            simt::let_fail(failing);
            const bool accepted = device->accepts(kConvolution, kHalf);
            simt::let_fail(std::nullopt);
            EXPECT_EQ(accepted, failing == P::forward) << autotune;
            EXPECT_EQ(context_of(*device).plans->find(kKey), "") << autotune;
        }
    }
}

TEST(Acceptance, RejectsFrozenNorms) {
    const auto device = make_cuda_device({.autotune = false});
    const ops::BatchNorm norm{.input = kConvolution.input, .from_sums = true};
    ops::BatchNorm frozen = norm;
    frozen.frozen = true;
    EXPECT_FALSE(device->accepts(frozen, kHalf));
    EXPECT_FALSE(device->accepts(ops::DualNorm{frozen, norm}, kHalf));
    EXPECT_FALSE(device->accepts(ops::DualNorm{norm, frozen}, kHalf));
    EXPECT_FALSE(device->accepts(ops::NormPool{frozen, {frozen.input, 3, 2, 1}}, kHalf));
}

TEST(SecondsOf, AreThoseOfAConvolutionWithAndWithoutSums) {
    const auto device = make_cuda_device({.autotune = false});
    for (const bool sums : {true, false}) {
        ops::Convolution convolution = kConvolution;
        convolution.sums = sums;
        const auto seconds = seconds_of({convolution}, kHalf, context_of(*device));
        ASSERT_TRUE(seconds.has_value());
        EXPECT_GE(*seconds, 0);
    }
}

TEST(SecondsOf, AreNoneWhereSomethingCannotBeBuilt) {
    const auto device = make_cuda_device({.autotune = false});
    ops::Convolution padded = kConvolution;
    padded.filters = 13;
    EXPECT_FALSE(seconds_of({padded}, kHalf, context_of(*device)).has_value());
}

}  // namespace
}  // namespace hpcai::device::cuda
