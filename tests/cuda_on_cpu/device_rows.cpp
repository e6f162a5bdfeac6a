// SPDX-License-Identifier: Apache-2.0
#include "device/device_rows.hpp"

#include "simt/streams.hpp"
#include "src/device/cuda/cuda_device.hpp"

namespace hpcai::device {

/// The CUDA engine on the GPU that tests/simt stands in for.
std::vector<DeviceRow> device_rows() {
    return cuda_rows("cuda_on_cpu", [] { return cuda::make_cuda_device({.autotune = false}); });
}

}  // namespace hpcai::device
