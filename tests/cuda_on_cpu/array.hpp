// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <hpcai/device/device.hpp>

namespace hpcai::device {

/// Numbers in device memory.
template <typename Number>
class Array {
public:
    Array(Device& device, const std::vector<Number>& values)
        : device_(device),
          count_(values.size()),
          memory_(device.allocate(values.size() * sizeof(Number))) {
        device.upload(data(), std::as_bytes(std::span(values)));
    }
    Number* data() const { return static_cast<Number*>(memory_->data()); }
    std::span<Number> span() const { return {data(), count_}; }
    std::vector<Number> read() const {
        std::vector<Number> values(count_);
        device_.download(std::as_writable_bytes(std::span(values)), data());
        return values;
    }

private:
    Device& device_;
    std::size_t count_;
    std::unique_ptr<Memory> memory_;
};

/// Returns a kernel that enqueues output = input + input.
inline std::unique_ptr<Kernel> twice(Device& device, const Array<float>& input, float* output) {
    auto kernel = device.build(ops::Add{{static_cast<std::int64_t>(input.span().size())}},
                               {.mode = Mode::inference});
    kernel->bind({.inputs = {input.data(), input.data()}, .output = output});
    return kernel;
}

}  // namespace hpcai::device
