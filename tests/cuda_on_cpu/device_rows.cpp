// SPDX-License-Identifier: Apache-2.0
#include "device/device_rows.hpp"

#include "simt/streams.hpp"
#include "src/device/cuda/cuda_device.hpp"

namespace hpcai::device {
namespace {

std::function<std::unique_ptr<Device>()> maker(simt::Order order) {
    return [order] {
        simt::set_order(order);
        return cuda::make_cuda_device({.autotune = false});
    };
}

}  // namespace

/// The CUDA engine on the GPU that tests/simt stands in for. How streams run ahead of one another
/// has nothing to do with precision, so one precision is enough for the other order.
std::vector<DeviceRow> device_rows() {
    std::vector<DeviceRow> rows = cuda_rows("cuda_on_cpu", maker(simt::Order::late));
    DeviceRow early = rows.back();
    early.name += "_early";
    early.make = maker(simt::Order::early);
    rows.push_back(early);
    return rows;
}

}  // namespace hpcai::device
