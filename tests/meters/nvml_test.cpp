// SPDX-License-Identifier: Apache-2.0
#include "stand_in/nvml.hpp"

#include <memory>

#include <dlfcn.h>

#include "fake_sysfs.hpp"

namespace hpcai::meters {
namespace {

/// The emulated NVML, with a clock that the tests set.
class NvmlOfStandIn : public testing::Test {
protected:
    void SetUp() override {
        const char* path = std::getenv("HPCAI500_STAND_IN_NVML");
        ASSERT_NE(path, nullptr) << "HPCAI500_STAND_IN_NVML is not set";
        source_.library = path;
        source_.seconds = [this] { return seconds_; };
        void* library = dlopen(path, RTLD_NOW);
        ASSERT_NE(library, nullptr) << dlerror();
        using Function = StandInNvml* (*)();
        nvml_ = reinterpret_cast<Function>(dlsym(library, "stand_in_nvml"))();
        std::construct_at(nvml_);
    }

    std::vector<Counter> counters(const std::vector<std::string>& uuids) const {
        return gpu_counters(source_, uuids);
    }

    StandInNvml* nvml_ = nullptr;
    double seconds_ = 0;
    NvmlSource source_;
};

TEST_F(NvmlOfStandIn, CountsTheMillijoulesOfEachGpu) {
    nvml_->millijoules = 5'000'000'250;
    const auto gpus = counters({"GPU-1", "GPU-2"});
    ASSERT_EQ(names_of(gpus), (std::vector<std::string>{"nvml:GPU-1", "nvml:GPU-2"}));
    EXPECT_EQ(gpus[0].unit, "J");
    EXPECT_DOUBLE_EQ(gpus[0].read(), 5'000'000.25);
    nvml_->millijoules += 1000;
    EXPECT_DOUBLE_EQ(gpus[1].read(), 5'000'001.25);
}

TEST_F(NvmlOfStandIn, IntegratesThePowerOfAGpuWithoutAnEnergyCounter) {
    nvml_->has_no_counter = true;
    nvml_->milliwatts = 100'000;
    const auto gpus = counters({"GPU-1"});
    ASSERT_EQ(names_of(gpus), std::vector<std::string>{"nvml-power:GPU-1"});
    EXPECT_DOUBLE_EQ(gpus[0].read(), 0);
    seconds_ = 2;
    EXPECT_DOUBLE_EQ(gpus[0].read(), 200);
    seconds_ = 3;
    nvml_->milliwatts = 300'000;
    EXPECT_DOUBLE_EQ(gpus[0].read(), 400);  // a mean of 200 W for a second
}

TEST_F(NvmlOfStandIn, NamesTheCallThatFails) {
    const auto gpus = counters({"MIG-1", "GPU-1"});
    ASSERT_EQ(gpus.size(), 2U);
    EXPECT_EQ(gpus[0].failure, "NVML: nvmlDeviceGetHandleByUUID: Not Found");
    EXPECT_EQ(gpus[1].failure, "");
    nvml_->fails_to_start = true;
    const auto none = counters({"GPU-1"});
    ASSERT_EQ(names_of(none), std::vector<std::string>{"nvml"});
    EXPECT_EQ(none[0].failure, "NVML: nvmlInit_v2: Unknown Error");
}

TEST_F(NvmlOfStandIn, IsNotLoadedIfNoRankUsesAGpu) {
    EXPECT_TRUE(counters({}).empty());
}

TEST(Nvml, IsReportedAbsentIfItsLibraryIs) {
    const std::vector<std::string> uuids{"GPU-1"};
    const auto gpus = gpu_counters({"libno-such-nvml.so.1", [] { return 0.0; }}, uuids);
    ASSERT_EQ(names_of(gpus), std::vector<std::string>{"nvml"});
    EXPECT_NE(gpus[0].failure.find("libno-such-nvml.so.1: cannot open"), std::string::npos)
        << gpus[0].failure;
}

}  // namespace
}  // namespace hpcai::meters
