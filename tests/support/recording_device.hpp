// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <hpcai/device/cpu_device.hpp>

namespace hpcai::device {

/// The CPU engine, which also records each requested kernel. `has_int8` is the device's answer.
class RecordingDevice : public Device {
public:
    explicit RecordingDevice(bool has_int8) : device_(make_cpu_device({})), has_int8_(has_int8) {}

    struct Build {
        ops::Operation operation;
        KernelOptions options;
    };
    const std::vector<Build>& builds() const { return builds_; }
    void forget_builds() { builds_.clear(); }

    bool has_int8() const override { return has_int8_; }
    std::string description() const override { return device_->description(); }
    std::vector<tensor::DType> compute_dtypes() const override { return device_->compute_dtypes(); }
    int threads() const override { return device_->threads(); }
    Determinism determinism() const override { return device_->determinism(); }
    std::unique_ptr<Memory> allocate(std::size_t bytes) override {
        return device_->allocate(bytes);
    }
    void upload(void* to, std::span<const std::byte> from) override { device_->upload(to, from); }
    void download(std::span<std::byte> to, const void* from) override {
        device_->download(to, from);
    }
    void enqueue_upload(void* to, std::span<const std::byte> from) override {
        device_->enqueue_upload(to, from);
    }
    void enqueue_copy(void* to, const void* from, std::size_t bytes) override {
        device_->enqueue_copy(to, from, bytes);
    }
    std::size_t storage_bytes(const tensor::Shape& shape, tensor::DType dtype) const override {
        return device_->storage_bytes(shape, dtype);
    }
    void store_channels_last(void* to, const tensor::Shape& shape, tensor::DType dtype,
                             std::span<const float> values) override {
        device_->store_channels_last(to, shape, dtype, values);
    }
    void synchronize() override { device_->synchronize(); }
    std::unique_ptr<Kernel> build(const ops::Operation& operation,
                                  const KernelOptions& options) override {
        builds_.push_back({operation, options});
        KernelOptions served = options;
        served.int8 = options.int8 && device_->has_int8();
        return device_->build(operation, served);
    }
    std::unique_ptr<Update> build(const Optimizer& optimizer,
                                  const OptimizerTensors& tensors) override {
        return device_->build(optimizer, tensors);
    }
    void check_finite(std::span<const float> values, StepScalars* scalars) override {
        device_->check_finite(values, scalars);
    }
    void add_losses(std::span<const float> losses, StepScalars* scalars) override {
        device_->add_losses(losses, scalars);
    }
    void finish_step(const LossScalePolicy& policy, StepScalars* scalars) override {
        device_->finish_step(policy, scalars);
    }
    std::uint64_t hash(std::span<const float> values) override { return device_->hash(values); }

private:
    std::unique_ptr<Device> device_;
    bool has_int8_;
    std::vector<Build> builds_;
};

}  // namespace hpcai::device
