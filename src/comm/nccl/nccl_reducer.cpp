// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/comm/nccl_reducer.hpp>

#include "all_reduce_times.hpp"
#include "device_all_reduce.hpp"
#include "nccl_group.hpp"

/// The cudaStream_t of a device of the CUDA engine.
extern "C" void* hpcai_cuda_stream(hpcai::device::Device& device);

namespace hpcai::comm {

namespace {

/// A stream of high priority: a step cannot end before its all-reduces; other work can run later.
class SumStream {
public:
    SumStream() {
        int lowest = 0, highest = 0;
        check_cuda(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "making a stream");
        check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest),
                   "making a stream");
    }
    ~SumStream() { cudaStreamDestroy(stream_); }
    SumStream(const SumStream&) = delete;
    SumStream& operator=(const SumStream&) = delete;
    cudaStream_t handle() const { return stream_; }

private:
    cudaStream_t stream_ = nullptr;
};

class Mark {
public:
    Mark() {
        check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
    }
    ~Mark() { cudaEventDestroy(event_); }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;

    void put(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "marking work"); }
    /// Later work on `stream` waits for the work before the mark.
    void hold_up(cudaStream_t stream) const {
        check_cuda(cudaStreamWaitEvent(stream, event_, 0), "ordering streams");
    }
    bool is_reached() const { return is_done(cudaEventQuery(event_), "waiting for the device"); }

private:
    cudaEvent_t event_ = nullptr;
};

class NcclReducer final : public GradientReducer {
public:
    explicit NcclReducer(const NcclReducerOptions& options)
        : size_(options.group.size()),
          wait_seconds_(options.wait_seconds),
          device_stream_(static_cast<cudaStream_t>(hpcai_cuda_stream(options.device))),
          nccl_(options) {
        if (!options.all_reduce) return;
        own_sums_ = std::make_unique<DeviceAllReduce>(*options.all_reduce, options.group.rank(),
                                                      options.group.size(), options.device);
        way_ = fmt::format(", {} in {}", name_of(options.all_reduce->algorithm),
                           name_of(options.all_reduce->format));
    }

    /// If an abort did not finish, freeing memory would block, so the memory is leaked.
    ~NcclReducer() override {
        if (!nccl_.end()) static_cast<void>(own_sums_.release());
    }

    void start(Communicator& group) {
        nccl_.start();
        if (!own_sums_) return;
        collective_try(group, [&] { own_sums_->connect(nccl_, sums_.handle()); });
    }

    int size() const override { return size_; }
    std::string description() const override {
        const int version = hpcai_nccl_version();
        return fmt::format("nccl {}.{}.{}{}", version / 10000, version / 100 % 100, version % 100,
                           way_);
    }
    std::string_view backend() const override { return "nccl"; }
    void prepare(std::span<float> device_values) override {
        if (own_sums_) own_sums_->prepare(device_values);
    }
    std::unique_ptr<Request> start_all_reduce(std::span<float> device_values) override;
    bool can_be_recorded() const override { return true; }
    void check() override;
    void end_step() override;
    void skip_step() override {
        if (own_sums_) own_sums_->skip_step(device_stream_);
    }
    std::optional<SentBytes> sent() const override {
        return own_sums_ ? std::optional(own_sums_->sent()) : std::nullopt;
    }
    std::optional<AllReduceSeconds> recorded_seconds() const override { return times_.last_run(); }
    void abort() noexcept override { nccl_.abort(); }
    std::vector<float> residual_of(std::span<float> device_values) override {
        check();
        return own_sums_ ? own_sums_->residual_of(device_values) : std::vector<float>{};
    }
    void set_residual(std::span<float> device_values, std::span<const float> residual) override {
        if (own_sums_) own_sums_->set_residual(device_values, residual);
    }

    bool is_joined(std::int64_t sum) const { return sum <= joined_; }
    /// Orders later work of the device after all started all-reduces, which include number `sum`.
    void join(std::int64_t sum);

private:
    void wait_for_step_end();

    int size_;
    double wait_seconds_;
    cudaStream_t device_stream_;
    SumStream sums_;
    Mark gradients_made_;
    Mark sums_made_;
    Mark step_end_;
    AllReduceTimes times_;
    bool ends_steps_ = false;  // step_end_ marks an earlier step
    std::int64_t started_ = 0;
    std::int64_t joined_ = 0;
    std::string way_;
    std::unique_ptr<DeviceAllReduce> own_sums_;  // null: NCCL's own all-reduce
    NcclGroup nccl_;  // destroyed first: its kernels use the members above
};

class NcclSum final : public Request {
public:
    NcclSum(NcclReducer& reducer, std::int64_t sum) : reducer_(reducer), sum_(sum) {}
    ~NcclSum() override {
        try {
            wait();
        } catch (const Error&) {
            // The end of the recording, which lacks this all-reduce, reports the failure.
        }
    }
    bool test() override { return reducer_.is_joined(sum_); }  // the device advances without calls
    void wait() override { reducer_.join(sum_); }

private:
    NcclReducer& reducer_;
    std::int64_t sum_;
};

std::unique_ptr<Request> NcclReducer::start_all_reduce(std::span<float> device_values) {
    gradients_made_.put(device_stream_);
    gradients_made_.hold_up(sums_.handle());
    // Make the request before anything can fail: a recording cannot end until this stream has
    // joined the device's stream.
    auto request = std::make_unique<NcclSum>(*this, ++started_);
    times_.begin_sum(sums_.handle());
    if (own_sums_) {
        own_sums_->enqueue(nccl_, device_values, sums_.handle());
    } else {
        nccl_.enqueue_sum(device_values, sums_.handle());
    }
    times_.end_sum(sums_.handle());
    return request;
}

void NcclReducer::join(std::int64_t sum) {
    if (is_joined(sum)) return;
    sums_made_.put(sums_.handle());
    times_.begin_wait(device_stream_);
    sums_made_.hold_up(device_stream_);
    times_.end_wait(device_stream_);
    joined_ = started_;
}

void NcclReducer::check() {
    step_end_.put(device_stream_);
    wait_for_step_end();
}

/// The first call also waits for the step that just ended, because libraries may allocate in a
/// first step.
void NcclReducer::end_step() {
    if (own_sums_) own_sums_->end_step(device_stream_);
    if (!ends_steps_) step_end_.put(device_stream_);
    wait_for_step_end();
    step_end_.put(device_stream_);
    ends_steps_ = true;
}

void NcclReducer::wait_for_step_end() {
    nccl_.wait_until([this] { return step_end_.is_reached(); }, "work of the device",
                     wait_seconds_);
}

}  // namespace

}  // namespace hpcai::comm

extern "C" {

int hpcai_nccl_version() {
    int version = 0;
    return ncclGetVersion(&version) == ncclSuccess ? version : 0;
}

hpcai::comm::GradientReducer* hpcai_make_nccl_reducer(
    const hpcai::comm::NcclReducerOptions& options) {
    std::unique_ptr<hpcai::comm::NcclReducer> reducer;
    hpcai::comm::collective_try(
        options.group, [&] { reducer = std::make_unique<hpcai::comm::NcclReducer>(options); });
    reducer->start(options.group);
    return reducer.release();
}

}  // extern "C"
