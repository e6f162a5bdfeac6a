// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/context/devices.hpp>

#include "storage/temporary_folder.hpp"

namespace hpcai::context {
namespace {

using storage::error_of;
using tensor::DType;

constexpr device::Precision kFp32{DType::f32, false}, kTf32{DType::f32, true},
    kMixed{DType::f16, false}, kFp16{.compute = DType::f16, .is_pure = true},
    kBf16{DType::bf16, false}, kInt8{.int8 = true};

TEST(ChoosePrecision, TakesTheFastestOfTheDeviceByItself) {
    using config::Precision;
    EXPECT_EQ(choose_precision(Precision::automatic, {{DType::bf16, DType::f32}}), kBf16);
    EXPECT_EQ(choose_precision(Precision::automatic, {{DType::f32}}), kFp32);
    EXPECT_EQ(choose_precision(Precision::automatic, {{DType::f32}, true}), kTf32);
}

TEST(ChoosePrecision, UsesTheConfiguredPrecisionIfTheDeviceHasIt) {
    using config::Precision;
    const DeviceFormats all{{DType::f16, DType::bf16, DType::f32}, true};
    EXPECT_EQ(choose_precision(Precision::fp32, all), kFp32);
    EXPECT_EQ(choose_precision(Precision::tf32, all), kTf32);
    EXPECT_EQ(choose_precision(Precision::mixed, all), kMixed);
    EXPECT_EQ(choose_precision(Precision::fp16, all), kFp16);
    EXPECT_EQ(choose_precision(Precision::automatic, all), kMixed);
    EXPECT_EQ(choose_precision(Precision::bf16, all), kBf16);
    const DeviceFormats integers{{DType::f32}, false, true};
    EXPECT_EQ(choose_precision(Precision::int8, integers), kInt8);
    EXPECT_EQ(choose_precision(Precision::fp32, integers), kFp32);
    EXPECT_EQ(choose_precision(Precision::automatic, integers), kFp32);
}

TEST(ChoosePrecision, RejectsWhatTheDeviceLacksAndNamesWhatThereIs) {
    using config::Precision;
    const auto refusal = [](Precision wanted) {
        return error_of(ExitCode::usage, [&] {
            choose_precision(wanted, {{DType::bf16, DType::f32}});
        });
    };
    const std::string message = refusal(Precision::mixed);
    EXPECT_NE(message.find("training.precision"), std::string::npos) << message;
    EXPECT_NE(message.find("'mixed'"), std::string::npos) << message;
    EXPECT_NE(message.find("(bf16, fp32)"), std::string::npos) << message;
    EXPECT_NE(refusal(Precision::tf32).find("'tf32'"), std::string::npos);
    EXPECT_NE(refusal(Precision::fp16).find("(bf16, fp32), got 'fp16'"), std::string::npos);
    EXPECT_EQ(refusal(Precision::int8),
              "training.precision: expected auto or a precision of this CPU (bf16, fp32), got "
              "'int8'; CPUs with AVX-512 VNNI support it");
    EXPECT_TRUE(message.ends_with("'mixed'; GPUs support it")) << message;
}

std::vector<RankFacts> ranks_on(const std::vector<std::string>& uuids) {
    std::vector<RankFacts> ranks;
    for (const std::string& uuid : uuids) ranks.push_back({1, "paper", uuid, {}});
    return ranks;
}

TEST(DescribeSharing, NamesTheFirstRanksWithOneGpu) {
    EXPECT_EQ(describe_gpu_sharing(ranks_on({"GPU-a", "GPU-b", "GPU-c", "GPU-b", "GPU-a"})),
              "ranks 1 and 3 share GPU-b");
    EXPECT_EQ(describe_gpu_sharing(ranks_on({"GPU-a", "GPU-b"})), "");
    EXPECT_EQ(describe_gpu_sharing(ranks_on({"", "", "GPU-a"})), "") << "CPUs are shared by cores";
}

TEST(CheckDevices, RequiresGpusForAllRanksOrNone) {
    EXPECT_NO_THROW(check_devices(ranks_on({"", ""}), config::Level::hardware));
    const std::string message = error_of(ExitCode::launch, [] {
        check_devices(ranks_on({"GPU-a", ""}), config::Level::custom);
    });
    EXPECT_NE(message.find("rank 1 has paper"), std::string::npos) << message;
}

TEST(CheckDevices, LetsOnlyTrialsShareAGpu) {
    using config::Level;
    const auto shared = ranks_on({"GPU-a", "GPU-a"});
    EXPECT_NO_THROW(check_devices(shared, Level::custom));
    for (const Level level : {Level::hardware, Level::system, Level::free}) {
        EXPECT_NO_THROW(check_devices(ranks_on({"GPU-a", "GPU-b"}), level));
        const std::string message =
            error_of(ExitCode::launch, [&] { check_devices(shared, level); });
        EXPECT_NE(message.find("ranks 0 and 1 share GPU-a"), std::string::npos) << message;
    }
}

config::Config on_cpu() {
    config::Config config;
    config.device.kind = config::DeviceKind::cpu;
    return config;
}

TEST(OpenCpu, HasTheRequestedThreads) {
    config::Config config = on_cpu();
    for (const int threads : {1, 2, 3}) {
        config.device.threads = threads;
        EXPECT_EQ(open_device(config, {}, {}).device->threads(), threads);
    }
}

TEST(OpenCpu, GuaranteesTheSameBitsOnlyWhenRequested) {
    config::Config config = on_cpu();
    EXPECT_FALSE(open_device(config, {}, {}).device->determinism().is_thread_invariant);
    config.run.deterministic = true;
    EXPECT_TRUE(open_device(config, {}, {}).device->determinism().is_thread_invariant);
}

TEST(OpenCpu, TakesEveryLayout) {
    using config::ActivationLayout;
    for (const auto layout : {ActivationLayout::automatic, ActivationLayout::blocked,
                              ActivationLayout::channels_last}) {
        config::Config config = on_cpu();
        config.device.threads = 1;
        config.device.layout = layout;
        EXPECT_NE(open_device(config, {}, {}).device, nullptr);
    }
}

}  // namespace
}  // namespace hpcai::context
