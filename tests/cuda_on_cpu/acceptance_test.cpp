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
const ops::NormConvolution kJoined{{.input = kConvolution.input, .relu = true, .from_sums = true},
                                   kConvolution};
const KernelOptions kHalf{.compute = DType::f16};

std::string key(const std::string& kind) {
    return "joined " + kind + " 2x5x4x16 filters=8 kernel=3 stride=1 padding=1 fp16";
}

TEST(Acceptance, TimesWithAutotuneAndRemembersWhichIsFaster) {
    const auto device = make_cuda_device({.autotune = true});
    PlanCache& plans = *context_of(*device).plans;
    const bool accepted = device->accepts(kJoined, kHalf);
    EXPECT_EQ(plans.find(key("norm")), accepted ? "joined" : "apart");
    EXPECT_NE(plans.find(key("sums")), "");
    EXPECT_EQ(device->accepts(kJoined, kHalf), accepted);
}

TEST(Acceptance, ComparesBothFormsWithTheirFastestPlansAndWritesAllDown) {
    const storage::TemporaryFolder folder;
    const std::string file = (folder / "plans.json").string();
    const auto device = make_cuda_device({.autotune = true, .plan_cache = file});
    device->accepts(kJoined, kHalf);
    const auto written = nlohmann::json::parse(std::ifstream(file));
    EXPECT_TRUE(written["plans"].contains(key("norm")));
    const ConvolutionShape shape = convolution_shape(kConvolution, kHalf);
    for (int pass = 0; pass < kConvolutionPasses; ++pass) {
        const std::string problem = plan_key(shape, static_cast<P>(pass));
        EXPECT_TRUE(written["plans"].contains(problem)) << problem;
    }
}

TEST(Acceptance, EndsWhereAPlanBreaksTheDevice) {
    simt::set_bad_plans({.deadly = 14});
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
        for (const char* kind : {"norm", "sums"}) {
            context_of(*device).plans->insert(key(kind), remembered);
        }
        EXPECT_EQ(device->accepts(kJoined, kHalf), remembered == "joined");
        EXPECT_EQ(device->accepts(kConvolution, kHalf), remembered == "joined");
    }
}

TEST(Acceptance, ForgetsThatItFusedIfThePlansOfAPassWereExcludedLater) {
    const ConvolutionShape shape = convolution_shape(kConvolution, kHalf);
    for (const P pass : {P::forward_with_statistics, P::normalized_forward_with_statistics,
                         P::normalized_weight_gradient, P::input_gradient_with_norm}) {
        const auto device = make_cuda_device({.autotune = true});
        PlanCache& plans = *context_of(*device).plans;
        for (const char* kind : {"norm", "sums"}) plans.insert(key(kind), "joined");
        for (int plan = 0; plan < 17; ++plan) {
            plans.bar(plan_key(shape, pass), "loops" + std::to_string(plan));
        }
        const bool is_sum = pass == P::forward_with_statistics;
        EXPECT_EQ(device->accepts(kConvolution, kHalf), !is_sum) << name_of(pass);
        EXPECT_EQ(device->accepts(kJoined, kHalf), is_sum) << name_of(pass);
        EXPECT_EQ(plans.find(key(is_sum ? "sums" : "norm")), "apart") << name_of(pass);
    }
}

TEST(Acceptance, TakesWhatCudnnHasWithoutAutotune) {
    const auto device = make_cuda_device({.autotune = false});
    EXPECT_TRUE(device->accepts(kJoined, kHalf));
    EXPECT_TRUE(device->accepts(kConvolution, kHalf));
    EXPECT_EQ(context_of(*device).plans->find(key("norm")), "");
}

TEST(Acceptance, RejectsWhatTheDeviceDoesNotRunAndForgetsIt) {
    for (const P failing : {P::forward_with_statistics, P::normalized_weight_gradient}) {
        for (const bool autotune : {true, false}) {
            const auto device = make_cuda_device({.autotune = autotune});
            simt::let_fail(failing);
            const bool joins = device->accepts(kJoined, kHalf);
            const bool sums = device->accepts(kConvolution, kHalf);
            simt::let_fail(std::nullopt);
            const char* const kind = failing == P::forward_with_statistics ? "sums" : "norm";
            EXPECT_FALSE(failing == P::forward_with_statistics ? sums : joins) << autotune;
            EXPECT_EQ(context_of(*device).plans->find(key(kind)), "") << autotune;
        }
    }
}

TEST(Acceptance, RejectsFrozenNorms) {
    const auto device = make_cuda_device({.autotune = false});
    ops::NormConvolution joined = kJoined;
    joined.norm.frozen = true;
    EXPECT_FALSE(device->accepts(joined, kHalf));
    EXPECT_FALSE(device->accepts(joined.norm, kHalf));
    ops::BatchNorm outer = joined.norm;
    outer.add = true;
    EXPECT_FALSE(device->accepts(ops::DualNorm{outer, kJoined.norm}, kHalf));
}

TEST(SecondsOf, AreThoseOfEveryOperationThatCanBeFused) {
    const auto device = make_cuda_device({.autotune = false});
    const ops::BatchNorm inner{.input = {2, 5, 4, 8}, .from_sums = true};
    ops::BatchNorm outer = inner;
    outer.add = outer.relu = true;
    const auto seconds = seconds_of({kConvolution, outer, kJoined, ops::DualNorm{outer, inner}},
                                    kHalf, context_of(*device));
    ASSERT_TRUE(seconds.has_value());
    EXPECT_GE(*seconds, 0);
}

TEST(SecondsOf, AreNoneWhereSomethingCannotBeBuilt) {
    const auto device = make_cuda_device({.autotune = false});
    ops::NormConvolution unlike = kJoined;
    unlike.norm.relu = false;
    EXPECT_FALSE(seconds_of({unlike}, kHalf, context_of(*device)).has_value());
}

}  // namespace
}  // namespace hpcai::device::cuda
