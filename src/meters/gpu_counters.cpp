// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>

#include <dlfcn.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/meters/counter.hpp>

namespace hpcai::meters {
namespace {

/// Of NVIDIA's nvml.h, which need not be there.
using NvmlDevice = void*;
constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;

/// NVIDIA's management library, as far as it is used here. It may be called from any thread.
class Nvml {
public:
    explicit Nvml(const std::string& library)
        : handle_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
        const char* why = handle_ == nullptr ? dlerror() : nullptr;
        require(handle_ != nullptr, ExitCode::data, "{}",
                printable(why == nullptr ? library + ": cannot be opened" : why));
        find("nvmlInit_v2", init_);
        find("nvmlShutdown", shutdown_);
        find("nvmlErrorString", error_string_);
        find("nvmlDeviceGetHandleByUUID", handle_by_uuid_);
        find("nvmlDeviceGetTotalEnergyConsumption", total_energy_);
        find("nvmlDeviceGetPowerUsage", power_usage_);
        check("nvmlInit_v2", init_());
    }
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;
    ~Nvml() { shutdown_(); }

    NvmlDevice device(const std::string& uuid) const {
        NvmlDevice device = nullptr;
        check("nvmlDeviceGetHandleByUUID", handle_by_uuid_(uuid.c_str(), &device));
        return device;
    }

    /// Since the driver was loaded; nothing where the GPU does not count it.
    std::optional<double> joules(NvmlDevice device) const {
        unsigned long long millijoules = 0;
        const int status = total_energy_(device, &millijoules);
        if (status == kNotSupported) return std::nullopt;
        check("nvmlDeviceGetTotalEnergyConsumption", status);
        return static_cast<double>(millijoules) * 1e-3;
    }

    double watts(NvmlDevice device) const {
        unsigned milliwatts = 0;
        check("nvmlDeviceGetPowerUsage", power_usage_(device, &milliwatts));
        return static_cast<double>(milliwatts) * 1e-3;
    }

private:
    template <typename Function>
    void find(const char* name, Function& function) const {
        function = reinterpret_cast<Function>(dlsym(handle_, name));
        require(function != nullptr, ExitCode::data, "NVML: the library has no {}", name);
    }

    void check(const char* call, int status) const {
        require(status == kSuccess, ExitCode::data, "NVML: {}: {}", call,
                printable(error_string_(status)));
    }

    void* handle_;  // never closed
    int (*init_)() = nullptr;
    int (*shutdown_)() = nullptr;
    const char* (*error_string_)(int) = nullptr;
    int (*handle_by_uuid_)(const char*, NvmlDevice*) = nullptr;
    int (*total_energy_)(NvmlDevice, unsigned long long*) = nullptr;
    int (*power_usage_)(NvmlDevice, unsigned*) = nullptr;
};

/// Trapezoids over the power at each reading.
class IntegratedPower {
public:
    IntegratedPower(std::function<double()> watts, std::function<double()> seconds)
        : watts_(std::move(watts)),
          seconds_(std::move(seconds)),
          last_watts_(watts_()),
          last_seconds_(seconds_()) {}
    double joules() {
        const double watts = watts_();
        const double seconds = seconds_();
        joules_ += (watts + last_watts_) / 2 * (seconds - last_seconds_);
        last_watts_ = watts;
        last_seconds_ = seconds;
        return joules_;
    }

private:
    std::function<double()> watts_, seconds_;
    double last_watts_, last_seconds_;
    double joules_ = 0;
};

Counter counter_of(const std::shared_ptr<const Nvml>& nvml, const NvmlSource& source,
                   const std::string& uuid) {
    Counter counter{"nvml:" + uuid, "J", ""};
    try {
        const NvmlDevice device = nvml->device(uuid);
        if (nvml->joules(device)) {
            counter.read = [nvml, device] {
                const auto joules = nvml->joules(device);
                require(joules.has_value(), ExitCode::data, "NVML: the energy counter is gone");
                return *joules;
            };
            return counter;
        }
        counter.name = "nvml-power:" + uuid;
        const auto power = std::make_shared<IntegratedPower>(
            [nvml, device] { return nvml->watts(device); }, source.seconds);
        counter.read = [power] { return power->joules(); };
    } catch (const Error& error) {
        counter.failure = error.what();
    }
    return counter;
}

}  // namespace

std::vector<Counter> gpu_counters(const NvmlSource& source, std::span<const std::string> uuids) {
    std::vector<Counter> counters;
    if (uuids.empty()) return counters;
    try {
        const auto nvml = std::make_shared<const Nvml>(source.library);
        for (const std::string& uuid : uuids) {
            counters.push_back(counter_of(nvml, source, uuid));
        }
    } catch (const Error& error) {
        counters.push_back({"nvml", "J", error.what()});
    }
    return counters;
}

}  // namespace hpcai::meters
