// SPDX-License-Identifier: Apache-2.0
#include "nvml.hpp"

#include <utility>

#include <dlfcn.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>

namespace hpcai::meters {

constexpr int kSuccess = 0, kNotSupported = 3, kTimeout = 10;  // nvmlReturn_t
constexpr int kSinceDriverWasLoaded = 0;                       // NVML_VOLATILE_ECC
constexpr unsigned long long kXidCriticalError = 8;            // nvmlEventTypeXidCriticalError
constexpr std::size_t kMaxXidsAtOnce = 64;

Nvml::Nvml(const std::string& library)
    : handle_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
    const char* why = handle_ == nullptr ? dlerror() : nullptr;
    require(handle_ != nullptr, ExitCode::data, "{}",
            printable(why == nullptr ? library + ": cannot be opened" : why));
    find_required(init_, "nvmlInit_v2");
    find_required(shutdown_, "nvmlShutdown");
    find_required(error_string_, "nvmlErrorString");
    find_required(handle_by_uuid_, "nvmlDeviceGetHandleByUUID");
    find_required(total_energy_, "nvmlDeviceGetTotalEnergyConsumption");
    find_required(power_usage_, "nvmlDeviceGetPowerUsage");
    find_optional(clock_reasons_, {"nvmlDeviceGetCurrentClocksEventReasons",
                                   "nvmlDeviceGetCurrentClocksThrottleReasons"});
    find_optional(ecc_errors_, {"nvmlDeviceGetTotalEccErrors"});
    find_optional(event_set_create_, {"nvmlEventSetCreate"});
    find_optional(event_set_free_, {"nvmlEventSetFree"});
    find_optional(register_events_, {"nvmlDeviceRegisterEvents"});
    // nvmlEventSetWait writes a prefix of the struct of nvmlEventSetWait_v2.
    find_optional(event_set_wait_, {"nvmlEventSetWait_v2", "nvmlEventSetWait"});
    check("nvmlInit_v2", init_());
}

NvmlDevice Nvml::device(const std::string& uuid) const {
    NvmlDevice device = nullptr;
    check("nvmlDeviceGetHandleByUUID", handle_by_uuid_(uuid.c_str(), &device));
    return device;
}

std::optional<double> Nvml::joules(NvmlDevice device) const {
    unsigned long long millijoules = 0;
    const int status = total_energy_(device, &millijoules);
    if (status == kNotSupported) return std::nullopt;
    check("nvmlDeviceGetTotalEnergyConsumption", status);
    return static_cast<double>(millijoules) * 1e-3;
}

double Nvml::watts(NvmlDevice device) const {
    unsigned milliwatts = 0;
    check("nvmlDeviceGetPowerUsage", power_usage_(device, &milliwatts));
    return static_cast<double>(milliwatts) * 1e-3;
}

std::uint64_t Nvml::clock_event_reasons(NvmlDevice device) const {
    unsigned long long reasons = 0;
    call("nvmlDeviceGetCurrentClocksEventReasons", clock_reasons_, device, &reasons);
    return reasons;
}

std::uint64_t Nvml::ecc_errors(NvmlDevice device, EccErrors kind) const {
    unsigned long long count = 0;
    call("nvmlDeviceGetTotalEccErrors", ecc_errors_, device, static_cast<int>(kind),
         kSinceDriverWasLoaded, &count);
    return count;
}

template <typename Function>
void Nvml::find_required(Function& function, const char* name) const {
    find_optional(function, {name});
    require(function != nullptr, ExitCode::data, "NVML: the library has no {}", name);
}

template <typename Function>
void Nvml::find_optional(Function& function, std::initializer_list<const char*> names) const {
    for (const char* name : names) {
        if (function != nullptr) return;
        function = reinterpret_cast<Function>(dlsym(handle_, name));
    }
}

void Nvml::check(const char* call, int status) const {
    require(status == kSuccess, ExitCode::data, "NVML: {}: {}", call,
            printable(error_string_(status)));
}

template <typename Function, typename... Arguments>
void Nvml::call(const char* name, Function function, Arguments... arguments) const {
    require(function != nullptr, ExitCode::data, "NVML: the library has no {}", name);
    check(name, function(arguments...));
}

NvmlXids::NvmlXids(std::shared_ptr<const Nvml> nvml, NvmlDevice device) : nvml_(std::move(nvml)) {
    require(nvml_->event_set_wait_ != nullptr && nvml_->event_set_free_ != nullptr, ExitCode::data,
            "NVML: the library has no nvmlEventSetWait_v2 or nvmlEventSetFree");
    nvml_->call("nvmlEventSetCreate", nvml_->event_set_create_, &events_);
    try {
        nvml_->call("nvmlDeviceRegisterEvents", nvml_->register_events_, device, kXidCriticalError,
                    events_);
    } catch (const Error&) {
        nvml_->event_set_free_(events_);
        throw;
    }
}

NvmlXids::~NvmlXids() {
    nvml_->event_set_free_(events_);
}

std::vector<std::int64_t> NvmlXids::read_new() {
    std::vector<std::int64_t> xids;
    while (xids.size() < kMaxXidsAtOnce) {
        Nvml::Event event{};
        const int status = nvml_->event_set_wait_(events_, &event, 0);
        if (status == kTimeout) break;
        nvml_->check("nvmlEventSetWait_v2", status);
        if (event.type == kXidCriticalError) xids.push_back(static_cast<std::int64_t>(event.data));
    }
    return xids;
}

}  // namespace hpcai::meters
