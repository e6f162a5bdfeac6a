// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <thread>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <hpcai/meters/gpu_health.hpp>

#include "stand_in/nvml.hpp"

namespace hpcai::meters {
namespace {

using Names = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;

/// A GPU of the emulated NVML.
class HealthOfAGpu : public testing::Test {
protected:
    void SetUp() override {
        const char* path = std::getenv("HPCAI500_STAND_IN_NVML");
        ASSERT_NE(path, nullptr) << "HPCAI500_STAND_IN_NVML is not set";
        library_ = path;
        void* library = dlopen(path, RTLD_NOW);
        ASSERT_NE(library, nullptr) << dlerror();
        using Function = StandInNvml* (*)();
        nvml_ = reinterpret_cast<Function>(dlsym(library, "stand_in_nvml"))();
        std::construct_at(nvml_);
    }

    StandInNvml* nvml_ = nullptr;
    std::string library_;
};

TEST_F(HealthOfAGpu, IsGoodIfTheDriverReportsNothing) {
    GpuHealthLog log(library_, "GPU-1");
    const GpuHealth health = log.finish();
    const DeviceHealthRecord good{0, "", "GPU-1", {}, {0.0, ""}, {0.0, ""}, {0.0, ""}, {}};
    EXPECT_EQ(health.record, good);
    EXPECT_EQ(health.xids_failure, "");
}

TEST_F(HealthOfAGpu, NamesTheCausesOfThrottlingAndTheShareOfPolls) {
    nvml_->clock_event_reasons = 0x01 | 0x02 | 0x10 | 0x100;  // idle, and user settings
    GpuHealthLog log(library_, "GPU-1");
    log.poll();
    nvml_->clock_event_reasons = 0x40 | 0x08 | 0x10;
    log.poll();
    nvml_->clock_event_reasons = 0;
    const GpuHealth health = log.finish();
    EXPECT_EQ(health.record.slowed_by, (Names{"hw_slowdown", "hw_thermal_slowdown"}));
    EXPECT_EQ(health.record.slowed_share.value, 0.25);
}

TEST_F(HealthOfAGpu, HasTheNameOfEachReasonThatSlows) {
    const std::vector<std::pair<unsigned long long, const char*>> names{
        {0x04, "sw_power_cap"},
        {0x08, "hw_slowdown"},
        {0x20, "sw_thermal_slowdown"},
        {0x40, "hw_thermal_slowdown"},
        {0x80, "hw_power_brake_slowdown"}};
    for (const auto& [bit, name] : names) {
        nvml_->clock_event_reasons = bit;
        EXPECT_EQ(GpuHealthLog(library_, "GPU-1").finish().record.slowed_by, Names{name});
    }
}

TEST_F(HealthOfAGpu, CountsMemoryErrorsSinceItsBeginning) {
    nvml_->corrected_ecc_errors = 100;
    nvml_->uncorrected_ecc_errors = 5;
    GpuHealthLog log(library_, "GPU-1");
    nvml_->corrected_ecc_errors = 103;
    nvml_->uncorrected_ecc_errors = 6;
    const GpuHealth health = log.finish();
    EXPECT_EQ(health.record.corrected_ecc_errors.value, 3);
    EXPECT_EQ(health.record.uncorrected_ecc_errors.value, 1);
}

TEST_F(HealthOfAGpu, HasNoCountOfMemoryErrorsAfterAReset) {
    nvml_->corrected_ecc_errors = 100;
    GpuHealthLog log(library_, "GPU-1");
    nvml_->corrected_ecc_errors = 1;
    const Quantity count = log.finish().record.corrected_ecc_errors;
    EXPECT_FALSE(count.value.has_value());
    EXPECT_EQ(count.reason, "NVML: the count was reset");
}

TEST_F(HealthOfAGpu, ListsErrorsOfTheDriverInTheirOrder) {
    nvml_->xids_to_come = 2;
    GpuHealthLog log(library_, "GPU-1");
    nvml_->xids_to_come = 1;
    log.poll();
    EXPECT_EQ(log.finish().record.xids, (Numbers{78, 79, 79}));
}

TEST_F(HealthOfAGpu, KeepsALimitedNumberOfDriverErrors) {
    nvml_->xids_to_come = 1000;
    GpuHealthLog log(library_, "GPU-1");
    for (int poll = 0; poll < 20; ++poll) log.poll();
    EXPECT_EQ(log.finish().record.xids.size(), 256U);
}

TEST_F(HealthOfAGpu, IsNullWithAReasonIfTheGpuDoesNotReportIt) {
    nvml_->tells_no_health = true;
    nvml_->clock_event_reasons = 0x04;
    const GpuHealth health = GpuHealthLog(library_, "GPU-1").finish();
    EXPECT_EQ(health.record.slowed_share.value, 1);
    EXPECT_FALSE(health.record.uncorrected_ecc_errors.value.has_value());
    EXPECT_EQ(health.record.uncorrected_ecc_errors.reason,
              "NVML: nvmlDeviceGetTotalEccErrors: Not Supported");
    EXPECT_EQ(health.xids_failure, "NVML: nvmlDeviceRegisterEvents: Not Supported");
    EXPECT_EQ(nvml_->open_event_sets, 0);
}

TEST_F(HealthOfAGpu, IsNullWithAReasonIfTheGpuCannotBeQueried) {
    const GpuHealth none = GpuHealthLog(library_, "MIG-1").finish();
    EXPECT_FALSE(none.record.slowed_share.value.has_value());
    EXPECT_EQ(none.record.slowed_share.reason, "NVML: nvmlDeviceGetHandleByUUID: Not Found");
    EXPECT_EQ(none.xids_failure, none.record.corrected_ecc_errors.reason);
    const GpuHealth absent = GpuHealthLog("libno-such-nvml.so.1", "GPU-1").finish();
    EXPECT_NE(absent.record.slowed_share.reason.find("libno-such-nvml.so.1: cannot open"),
              std::string::npos);
}

TEST_F(HealthOfAGpu, IsPolledByAThreadFromConstructionOn) {
    nvml_->xids_to_come = 1;
    nvml_->clock_event_reasons = 0x20;
    GpuHealthPoller watch(library_, "GPU-1", 3600);
    const GpuHealth health = watch.finish(3600);
    EXPECT_EQ(health.record.xids, Numbers{79});
    EXPECT_EQ(health.record.slowed_share.value, 1);
    EXPECT_EQ(nvml_->open_event_sets, 0) << "the thread has closed what it opened";
}

TEST_F(HealthOfAGpu, IsWhatTheDriverReportedBeforeItStoppedAnswering) {
    nvml_->xids_to_come = 1;
    nvml_->hangs_at_look = 3;
    {
        GpuHealthPoller watch(library_, "GPU-1", 1e-3);
        while (nvml_->looks < 3) std::this_thread::yield();
        const GpuHealth health = watch.finish(0.05);
        EXPECT_EQ(health.record.device, "GPU-1");
        EXPECT_EQ(health.record.xids, Numbers{79});
        EXPECT_EQ(health.record.slowed_share.value, 0);
        EXPECT_FALSE(health.record.uncorrected_ecc_errors.value.has_value());
        EXPECT_EQ(health.record.uncorrected_ecc_errors.reason, "NVML has not answered for 0.05 s");
        EXPECT_EQ(health.xids_failure, "NVML has not answered for 0.05 s");
    }
    nvml_->hangs_at_look = 0;
    while (nvml_->open_event_sets > 0) std::this_thread::yield();
}

TEST_F(HealthOfAGpu, IsUnknownIfTheDriverHasNeverAnswered) {
    nvml_->hangs_at_look = 1;
    GpuHealthPoller watch(library_, "GPU-1", 3600);
    const GpuHealth health = watch.finish(0.05);
    EXPECT_EQ(health.record.device, "GPU-1");
    EXPECT_EQ(health.record.slowed_share.reason, "NVML has not answered for 0.05 s");
    EXPECT_EQ(health.xids_failure, health.record.slowed_share.reason);
    nvml_->hangs_at_look = 0;
    while (nvml_->looks == 0 || nvml_->open_event_sets > 0) std::this_thread::yield();
}

}  // namespace
}  // namespace hpcai::meters
