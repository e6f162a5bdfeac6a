// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <hpcai/device/cpu_device.hpp>
#include <hpcai/reference/tolerance.hpp>

/// The table of all devices, precisions and tolerances for tests of kernels. A test with a
/// DeviceRow runs on every row.
namespace hpcai::device {

/// A device and a precision.
struct DeviceRow {
    std::string name;  // letters, digits and underscores only, for googletest
    std::function<std::unique_ptr<Device>()> make;
    tensor::DType compute = tensor::DType::f32;
    Tolerance tolerance;
    bool tf32 = false;  // see KernelOptions
    bool int8 = false;  // see KernelOptions
    RoundingKey rounding{};
    StepScalars step{};
    /// Makes a deterministic device of the same kind as make().
    std::function<std::unique_ptr<Device>()> make_repeatable = make;
};

inline const std::string& to_string(const DeviceRow& row) {
    return row.name;
}

inline void PrintTo(const DeviceRow& row, std::ostream* stream) {
    *stream << row.name;
}

inline DeviceRow cpu_row(tensor::DType compute, const CpuDeviceOptions& options) {
    return {"cpu_" + std::string(name_of(compute)) +
                (options.layout == CpuLayout::automatic ? "_automatic_" : "_channels_last_") +
                (options.deterministic ? "deterministic_" : "") + std::to_string(options.threads) +
                "_threads",
            [options] { return make_cpu_device(options); }, compute, tolerance_of(compute)};
}

/// Returns every precision of this machine in every layout with one and two threads, and with an
/// odd number of threads for deterministic devices.
inline std::vector<DeviceRow> cpu_rows() {
    std::vector<DeviceRow> rows;
    for (const tensor::DType compute : make_cpu_device({})->compute_dtypes()) {
        for (const CpuLayout layout : {CpuLayout::automatic, CpuLayout::channels_last}) {
            for (const int threads : {1, 2}) rows.push_back(cpu_row(compute, {threads, layout}));
            rows.push_back(cpu_row(compute, {3, layout, true}));
        }
    }
    return rows;
}

/// Returns every precision of a GPU; the argument of `make` is whether the device is deterministic.
inline std::vector<DeviceRow> cuda_rows(
    const std::string& name, const std::function<std::unique_ptr<Device>(bool)>& make_device) {
    const auto make = [make_device] { return make_device(false); };
    using tensor::DType;
    std::vector<DeviceRow> rows{
        {name + "_tf32", make, DType::f32, gpu_tolerance_of(DType::f32, true), true}};
    for (const DType compute : {DType::f32, DType::f16, DType::bf16}) {
        rows.push_back({name + "_" + std::string(name_of(compute)), make, compute,
                        gpu_tolerance_of(compute, false)});
    }
    for (DeviceRow& row : rows) row.make_repeatable = [make_device] { return make_device(true); };
    return rows;
}

/// Returns all rows of the linked test program, from device_rows.cpp or a file like it.
std::vector<DeviceRow> device_rows();

/// The CPU engine with one thread and with two, for results that must not depend on threads.
struct ThreadPair {
    DeviceRow one, two;
};

inline std::vector<ThreadPair> cpu_thread_pairs() {
    std::vector<ThreadPair> pairs;
    for (const tensor::DType compute : make_cpu_device({})->compute_dtypes()) {
        for (const CpuLayout layout : {CpuLayout::automatic, CpuLayout::channels_last}) {
            pairs.push_back({cpu_row(compute, {1, layout}), cpu_row(compute, {2, layout})});
        }
    }
    return pairs;
}

}  // namespace hpcai::device
