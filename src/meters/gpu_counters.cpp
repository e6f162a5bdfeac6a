// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <hpcai/base/error.hpp>
#include <hpcai/meters/counter.hpp>

#include "nvml.hpp"

namespace hpcai::meters {
namespace {

/// Integrates power between reads by the trapezoidal rule.
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
                require(joules.has_value(), ExitCode::data, "NVML: no energy counter any more");
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
        for (const std::string& uuid : uuids) counters.push_back(counter_of(nvml, source, uuid));
    } catch (const Error& error) {
        counters.push_back({"nvml", "J", error.what()});
    }
    return counters;
}

}  // namespace hpcai::meters
