// SPDX-License-Identifier: Apache-2.0
#include "device/device_rows.hpp"

#include <cstdlib>

#include <hpcai/device/cuda_library.hpp>

namespace hpcai::device {

/// Rows of the CPU engine, or with HPCAI500_TEST_DEVICE=cuda those of this machine's first GPU.
std::vector<DeviceRow> device_rows() {
    const char* wanted = std::getenv("HPCAI500_TEST_DEVICE");
    if (wanted == nullptr || std::string_view(wanted) != "cuda") return cpu_rows();
    const auto library = CudaLibrary::open();
    return cuda_rows("cuda", [library](bool deterministic) {
        return library->make_device({.deterministic = deterministic, .autotune = false});
    });
}

}  // namespace hpcai::device
