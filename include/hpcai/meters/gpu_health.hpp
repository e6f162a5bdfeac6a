// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/meters/sampler.hpp>
#include <hpcai/records/run_record.hpp>

/// GPU health as reported by the driver.
namespace hpcai::meters {

struct GpuHealth {
    DeviceHealthRecord record;  // without rank and host
    std::string xids_failure;   // why Xids (driver errors) could not be read; empty if they could
};

/// Polls one GPU through NVML. A value that cannot be read is null with a reason; nothing throws.
class GpuHealthLog {
public:
    /// Polls the GPU with this UUID for the first time.
    GpuHealthLog(const std::string& library, const std::string& uuid);
    ~GpuHealthLog();

    /// Adds the current reasons for throttling, and new Xids (at most 256 in all).
    void poll();

    /// Returns the results so far without polling. The ECC error counts are null; they have no
    /// reason if finish() can still read them.
    GpuHealth snapshot() const;

    /// Polls for the last time and returns the results.
    GpuHealth finish();

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Polls a GPU periodically in a separate thread. Only that thread calls the library, because the
/// driver may hang after the GPU has left the bus.
class GpuHealthPoller {
public:
    GpuHealthPoller(const std::string& library, const std::string& uuid, double interval_seconds);

    /// Polls for the last time and returns the results. If the driver does not answer within
    /// `timeout_seconds`, returns the results so far, with a reason for each null, and detaches the
    /// thread. May be called once.
    GpuHealth finish(double timeout_seconds);

private:
    struct SharedHealth;
    std::shared_ptr<SharedHealth> shared_;
    Repeater repeater_;
};

}  // namespace hpcai::meters
