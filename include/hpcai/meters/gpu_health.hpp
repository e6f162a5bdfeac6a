// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <hpcai/meters/repeater.hpp>
#include <hpcai/records/run_record.hpp>

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

    /// What the looks have shown, without another. Counts of memory errors are null, without a
    /// reason where they are for finish() to read.
    GpuHealth so_far() const;

    /// The last look.
    GpuHealth finish();

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Looks at a GPU once in a while in a thread of its own, which alone calls the library: the driver
/// may never answer where the GPU has left the bus.
class GpuWatch {
public:
    GpuWatch(const std::string& library, const std::string& uuid, double seconds_between);

    /// Looks for the last time; returns what was seen. Where the driver does not answer within
    /// `patience_seconds` that is what it has told before, with the reason for what is null, and
    /// the thread is left to itself. To be called once.
    GpuHealth finish(double patience_seconds);

private:
    struct Seen;
    std::shared_ptr<Seen> seen_;
    Repeater repeater_;
};

}  // namespace hpcai::meters
