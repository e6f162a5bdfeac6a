// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <hpcai/base/run_record.hpp>
#include <hpcai/meters/repeater.hpp>

/// What the driver of a GPU tells of its health.
namespace hpcai::meters {

struct GpuHealth {
    DeviceHealthRecord record;  // without rank and host
    std::string xids_unknown;   // why record.xids may lack some; empty: it has all
};

/// Looks at one GPU, by NVML. What cannot be read is null with a reason; nothing throws.
class GpuHealthLog {
public:
    /// The first look at the GPU with this UUID.
    GpuHealthLog(const std::string& library, const std::string& uuid);
    GpuHealthLog(const GpuHealthLog&) = delete;
    GpuHealthLog& operator=(const GpuHealthLog&) = delete;
    ~GpuHealthLog();

    /// Why its clocks are lowered now, and errors of the driver since the last look.
    void look();

    /// The last look.
    GpuHealth finish();

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Looks at a GPU once in a while in a thread of its own, which opens the library, too.
class GpuWatch {
public:
    GpuWatch(const std::string& library, const std::string& uuid, double seconds_between);

    /// Looks for the last time; returns what was seen. To be called once.
    GpuHealth finish();

private:
    std::unique_ptr<GpuHealthLog> log_;  // of the thread, until it has ended
    Repeater repeater_;
};

}  // namespace hpcai::meters
