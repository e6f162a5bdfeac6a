// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/device/device.hpp>

namespace hpcai::device {

namespace {

class HostTimeline final : public Timeline {
public:
    void mark() override { marks_.push_back(watch_.seconds()); }
    std::vector<double> seconds() const override {
        std::vector<double> intervals;
        for (std::size_t i = 1; i < marks_.size(); ++i)
            intervals.push_back(marks_[i] - marks_[i - 1]);
        return intervals;
    }

private:
    Stopwatch watch_;
    std::vector<double> marks_;
};

}  // namespace

std::string_view name_of(const Precision& precision) {
    if (precision.compute == tensor::DType::f16) return precision.is_pure ? "fp16" : "mixed";
    if (precision.int8) return "int8";
    return precision.tf32 ? "tf32" : tensor::name_of(precision.compute);
}

std::size_t Device::storage_bytes(const tensor::Shape& shape, tensor::DType dtype) const {
    return device::storage_bytes(shape, dtype);
}

void Device::resize_crops(const ViewBatch& /*batch*/) {
    throw Error(ExitCode::internal, "this device cannot resize images");
}

std::unique_ptr<Timeline> Device::make_timeline() {
    return std::make_unique<HostTimeline>();
}

std::unique_ptr<Recording> Device::record(const std::function<void()>& /*enqueue*/) {
    throw Error(ExitCode::internal, "this device cannot record work");
}

std::size_t storage_bytes(const tensor::Shape& shape, tensor::DType dtype) {
    return static_cast<std::size_t>(shape.elements()) * size_of(dtype);
}

}  // namespace hpcai::device
