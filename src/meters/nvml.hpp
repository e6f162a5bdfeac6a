// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hpcai::meters {

/// nvmlDevice_t of nvml.h (versions 12 and 13). The header need not be installed.
using NvmlDevice = void*;

enum class EccErrors { corrected = 0, uncorrected = 1 };  // nvmlMemoryErrorType_t

/// The functions of NVIDIA's management library that this program uses. May be called from any
/// thread. Throws Error(data) naming the call that fails or that the library lacks.
class Nvml {
public:
    explicit Nvml(const std::string& library);
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;
    ~Nvml() { shutdown_(); }

    NvmlDevice device(const std::string& uuid) const;

    /// Returns the energy since the driver was loaded; nothing if the GPU does not count it.
    std::optional<double> joules(NvmlDevice device) const;
    double watts(NvmlDevice device) const;

    /// Returns why the clocks are throttled now: the bits nvmlClocksEventReason... of nvml.h.
    std::uint64_t clock_event_reasons(NvmlDevice device) const;
    /// Returns the number of errors in all memories of the GPU since the driver was loaded.
    std::uint64_t ecc_errors(NvmlDevice device, EccErrors kind) const;

private:
    friend class NvmlXids;

    template <typename Function>
    void find_required(Function& function, const char* name) const;
    /// Finds a function by the first of `names` that the library has, because NVIDIA renamed some.
    /// Leaves it null if the library has none.
    template <typename Function>
    void find_optional(Function& function, std::initializer_list<const char*> names) const;
    void check(const char* call, int status) const;
    /// Calls `function`, which find_optional() has set. Throws if it is null.
    template <typename Function, typename... Arguments>
    void call(const char* name, Function function, Arguments... arguments) const;

    struct Event {
        NvmlDevice device;
        unsigned long long type;
        unsigned long long data;
        unsigned gpu_instance, compute_instance;
    };

    void* handle_;  // of dlopen; never closed
    int (*init_)() = nullptr;
    int (*shutdown_)() = nullptr;
    const char* (*error_string_)(int) = nullptr;
    int (*handle_by_uuid_)(const char*, NvmlDevice*) = nullptr;
    int (*total_energy_)(NvmlDevice, unsigned long long*) = nullptr;
    int (*power_usage_)(NvmlDevice, unsigned*) = nullptr;
    int (*clock_reasons_)(NvmlDevice, unsigned long long*) = nullptr;
    int (*ecc_errors_)(NvmlDevice, int, int, unsigned long long*) = nullptr;
    int (*event_set_create_)(void**) = nullptr;
    int (*event_set_free_)(void*) = nullptr;
    int (*register_events_)(NvmlDevice, unsigned long long, void*) = nullptr;
    int (*event_set_wait_)(void*, Event*, unsigned) = nullptr;
};

/// The errors (Xids) that the driver reports for one GPU from construction on.
class NvmlXids {
public:
    NvmlXids(std::shared_ptr<const Nvml> nvml, NvmlDevice device);
    NvmlXids(const NvmlXids&) = delete;
    NvmlXids& operator=(const NvmlXids&) = delete;
    ~NvmlXids();

    /// Returns at most 64 new Xids, in order, and leaves the rest to the next call. Does not block.
    std::vector<std::int64_t> read_new();

private:
    std::shared_ptr<const Nvml> nvml_;
    void* events_ = nullptr;
};

}  // namespace hpcai::meters
