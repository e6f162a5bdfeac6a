// SPDX-License-Identifier: Apache-2.0
#include "nvml.hpp"

#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

/// Emulates NVIDIA's management library: healthy GPUs whose UUIDs begin with "GPU-" and whose power
/// is 250 W, unless a test changes that. If HPCAI500_STAND_IN_XID is set, each GPU reports this
/// error of its driver once. If HPCAI500_STAND_IN_HANGS is set, no query of a GPU's clocks returns.
namespace {

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kTimeout = 10;
constexpr int kUnknown = 999;
constexpr unsigned kMilliwatts = 250'000;

constexpr unsigned long long kXidCriticalError = 8;
constexpr int kLastXid = 79;

/// An event as NVML defines it.
struct Event {
    void* device;
    unsigned long long type;
    unsigned long long data;
    unsigned gpu_instance, compute_instance;
};

StandInNvml state{};
char gpu, events;
bool has_told_xid;

/// Returns the Xid of HPCAI500_STAND_IN_XID; 0: none.
unsigned long long xid_of_environment() {
    const char* text = std::getenv("HPCAI500_STAND_IN_XID");
    return text == nullptr || has_told_xid ? 0 : std::strtoull(text, nullptr, 10);
}

}  // namespace

extern "C" {

StandInNvml* stand_in_nvml() {
    return &state;
}

int nvmlInit_v2() {
    return state.fails_to_start ? kUnknown : kSuccess;
}

int nvmlShutdown() {
    return kSuccess;
}

const char* nvmlErrorString(int status) {
    if (status == kNotSupported) return "Not Supported";
    return status == kNotFound ? "Not Found" : "Unknown Error";
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
    if (!std::string_view(uuid).starts_with("GPU-")) return kNotFound;
    *device = &gpu;
    return kSuccess;
}

int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
    if (state.has_no_counter) return kNotSupported;
    if (state.millijoules != 0) {
        *millijoules = state.millijoules;
        return kSuccess;
    }
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const double seconds = std::chrono::duration<double>(now).count();
    *millijoules = static_cast<unsigned long long>(seconds * kMilliwatts);
    return kSuccess;
}

int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
    *milliwatts = state.milliwatts != 0 ? state.milliwatts : kMilliwatts;
    return kSuccess;
}

int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* reasons) {
    const int look = ++state.looks;
    while (std::getenv("HPCAI500_STAND_IN_HANGS") != nullptr) {
        std::this_thread::sleep_for(std::chrono::hours(1));
    }
    while (state.hangs_at_look > 0 && look >= state.hangs_at_look) std::this_thread::yield();
    *reasons = state.clock_event_reasons;
    return kSuccess;
}

int nvmlDeviceGetTotalEccErrors(void*, int kind, int counter, unsigned long long* count) {
    if (state.tells_no_health || counter != 0) return kNotSupported;
    *count = kind == 0 ? state.corrected_ecc_errors : state.uncorrected_ecc_errors;
    return kSuccess;
}

int nvmlEventSetCreate(void** set) {
    *set = &events;
    ++state.open_event_sets;
    return kSuccess;
}

int nvmlEventSetFree(void*) {
    --state.open_event_sets;
    return kSuccess;
}

int nvmlDeviceRegisterEvents(void*, unsigned long long types, void* set) {
    if (state.tells_no_health || types != kXidCriticalError || set != &events) return kNotSupported;
    return kSuccess;
}

int nvmlEventSetWait_v2(void*, Event* event, unsigned) {
    const unsigned long long given = xid_of_environment();
    if (given == 0 && state.xids_to_come == 0) return kTimeout;
    if (given != 0) {
        has_told_xid = true;
        *event = {&gpu, kXidCriticalError, given, 0, 0};
        return kSuccess;
    }
    --state.xids_to_come;
    *event = {&gpu, kXidCriticalError,
              static_cast<unsigned long long>(kLastXid - state.xids_to_come), 0, 0};
    return kSuccess;
}
}
