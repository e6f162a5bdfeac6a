// SPDX-License-Identifier: Apache-2.0
#include "nvml.hpp"

#include <chrono>
#include <string_view>

/// Stands in for NVIDIA's management library: GPUs whose UUIDs begin with "GPU-" and which take
/// 250 W since the machine started, unless a test says otherwise.
namespace {

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kUnknown = 999;
constexpr unsigned kMilliwatts = 250'000;

StandInNvml state{};
char gpu;

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
}
