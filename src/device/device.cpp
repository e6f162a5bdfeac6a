// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>
#include <hpcai/device/device.hpp>

namespace hpcai::device {

std::string_view name_of(const Precision& precision) {
    if (precision.compute == tensor::DType::f16) return "mixed";
    return precision.tf32 ? "tf32" : tensor::name_of(precision.compute);
}

std::size_t Device::storage_bytes(const tensor::Shape& shape, tensor::DType dtype) const {
    return device::storage_bytes(shape, dtype);
}

bool Device::accepts(const ops::Operation& /*operation*/, const KernelOptions& /*options*/) {
    return false;
}

void Device::resize_crops(const ViewBatch& /*batch*/) {
    throw Error(ExitCode::internal, "this device does not resize pictures");
}

std::unique_ptr<Recording> Device::record(const std::function<void()>& /*enqueue*/) {
    throw Error(ExitCode::internal, "this device has no recordings");
}

std::size_t storage_bytes(const tensor::Shape& shape, tensor::DType dtype) {
    return static_cast<std::size_t>(shape.elements()) * size_of(dtype);
}

}  // namespace hpcai::device
