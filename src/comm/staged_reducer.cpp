// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>
#include <vector>

#include "hpcai/base/error.hpp"
#include "hpcai/comm/gradient_reducer.hpp"

namespace hpcai::comm {

namespace {

using HostCopy = std::shared_ptr<std::vector<float>>;

class StagedSum final : public Request {
public:
    StagedSum(Communicator& group, device::Device& device, std::span<float> device_values,
              HostCopy copy)
        : group_(group), device_(device), device_values_(device_values), copy_(std::move(copy)) {
        device_.download(std::as_writable_bytes(std::span(*copy_)), device_values_.data());
        sum_ = group_.start_all_reduce_sum(*copy_);
    }
    ~StagedSum() override {
        try {
            wait();
        } catch (const Error&) {
            // Whoever uses the group next gets it again.
        }
    }

    bool test() override { return sum_->test(); }

    void wait() override {
        if (done_) return;
        done_ = true;
        try {
            sum_->wait();
        } catch (...) {
            group_.keep(copy_);  // others may still send into it
            throw;
        }
        device_.upload(device_values_.data(), std::as_bytes(std::span(*copy_)));
    }

private:
    Communicator& group_;
    device::Device& device_;
    std::span<float> device_values_;
    HostCopy copy_;
    std::unique_ptr<Request> sum_;  // goes before the copy
    bool done_ = false;
};

class NothingToSum final : public Request {
public:
    bool test() override { return true; }
    void wait() override {}
};

class StagedReducer final : public GradientReducer {
public:
    StagedReducer(Communicator& group, device::Device& device) : group_(group), device_(device) {}

    int size() const override { return group_.size(); }
    std::string description() const override { return "mpi through host memory"; }
    std::unique_ptr<Request> start_sum(std::span<float> device_values) override {
        if (group_.size() == 1) return std::make_unique<NothingToSum>();
        return std::make_unique<StagedSum>(group_, device_, device_values, copy_of(device_values));
    }
    bool can_be_recorded() const override { return group_.size() == 1; }
    void check() override {}  // a sum that has been waited for has been made

private:
    /// The same memory in every step.
    HostCopy copy_of(std::span<const float> device_values) {
        HostCopy& copy = copies_[{device_values.data(), device_values.size()}];
        if (!copy) copy = std::make_shared<std::vector<float>>(device_values.size());
        ensure(copy.use_count() == 1, "the sum of these gradients is still under way");
        return copy;
    }

    Communicator& group_;
    device::Device& device_;
    std::map<std::pair<const float*, std::size_t>, HostCopy> copies_;
};

}  // namespace

std::unique_ptr<GradientReducer> make_staged_reducer(Communicator& group, device::Device& device) {
    return std::make_unique<StagedReducer>(group, device);
}

}  // namespace hpcai::comm
