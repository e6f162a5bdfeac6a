// SPDX-License-Identifier: Apache-2.0
#include "device/device_rows.hpp"

#include "device/cuda/cuda_device.hpp"
#include "simt/streams.hpp"

namespace hpcai::device {
namespace {

std::unique_ptr<Device> make(simt::Order order, bool deterministic) {
    simt::set_order(order);
    return cuda::make_cuda_device({.deterministic = deterministic, .autotune = false});
}

}  // namespace

/// Returns the rows of the CUDA engine on the GPU that tests/simt emulates. The order of streams
/// does not depend on precision, so one precision suffices for the second order.
std::vector<DeviceRow> device_rows() {
    std::vector<DeviceRow> rows = cuda_rows(
        "cuda_on_cpu", [](bool deterministic) { return make(simt::Order::late, deterministic); });
    DeviceRow early = rows.back();
    early.name += "_early";
    early.make = [] { return make(simt::Order::early, false); };
    early.make_repeatable = [] { return make(simt::Order::early, true); };
    rows.push_back(early);
    return rows;
}

}  // namespace hpcai::device
