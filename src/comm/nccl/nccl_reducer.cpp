// SPDX-License-Identifier: Apache-2.0
#include <hpcai/comm/collectives.hpp>
#include <hpcai/comm/nccl_reducer.hpp>

#include "all_reduce_times.hpp"
#include "device_all_reduce.hpp"
#include "nccl_group.hpp"

/// Returns the cudaStream_t of a device of the CUDA engine.
extern "C" void* hpcai_cuda_stream(hpcai::device::Device& device);

namespace hpcai::comm {
namespace {

/// All-reduces have a high priority: a step cannot end before them, but other work can run later.
class HighPriorityStream {
public:
    HighPriorityStream() {
        int lowest = 0, highest = 0;
        check_cuda(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "making a stream");
        check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest),
                   "making a stream");
    }
    ~HighPriorityStream() { cudaStreamDestroy(stream_); }
    HighPriorityStream(const HighPriorityStream&) = delete;
    HighPriorityStream& operator=(const HighPriorityStream&) = delete;
    cudaStream_t handle() const { return stream_; }

private:
    cudaStream_t stream_ = nullptr;
};

class StreamEvent {
public:
    StreamEvent() {
        check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
    }
    ~StreamEvent() { cudaEventDestroy(event_); }
    StreamEvent(const StreamEvent&) = delete;
    StreamEvent& operator=(const StreamEvent&) = delete;

    void record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "recording"); }
    /// Makes later work on `stream` wait for the event.
    void block(cudaStream_t stream) const {
        check_cuda(cudaStreamWaitEvent(stream, event_, 0), "ordering streams");
    }
    bool is_complete() const { return is_done(cudaEventQuery(event_), "waiting for the device"); }

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
        all_reduce_ = std::make_unique<DeviceAllReduce>(*options.all_reduce, options.group.rank(),
                                                        options.group.size(), options.device);
        algorithm_text_ = fmt::format(", {} in {}", name_of(options.all_reduce->algorithm),
                                      name_of(options.all_reduce->format));
    }

    /// Leaks the memory if an abort did not finish, because freeing it would block.
    ~NcclReducer() override {
        if (!nccl_.end()) static_cast<void>(all_reduce_.release());
    }

    void start(Communicator& group) {
        nccl_.start();
        if (!all_reduce_) return;
        collective_try(group, [&] { all_reduce_->connect(nccl_, all_reduce_stream_.handle()); });
    }

    int size() const override { return size_; }
    std::string description() const override {
        const int version = hpcai_nccl_version();
        return fmt::format("nccl {}.{}.{}{}", version / 10000, version / 100 % 100, version % 100,
                           algorithm_text_);
    }
    std::string_view backend() const override { return "nccl"; }
    void prepare(std::span<float> device_values) override {
        if (all_reduce_) all_reduce_->prepare(device_values);
    }
    std::unique_ptr<Request> start_all_reduce(std::span<float> device_values) override;
    bool can_be_recorded() const override { return true; }
    void check() override;
    void end_step() override;
    void skip_step() override {
        if (all_reduce_) all_reduce_->skip_step(device_stream_);
    }
    std::optional<SentBytes> sent() const override {
        return all_reduce_ ? std::optional(all_reduce_->sent()) : std::nullopt;
    }
    std::optional<AllReduceSeconds> recorded_seconds() const override { return times_.last_run(); }
    void abort() noexcept override { nccl_.abort(); }
    std::vector<float> residual_of(std::span<float> device_values) override {
        check();
        return all_reduce_ ? all_reduce_->residual_of(device_values) : std::vector<float>{};
    }
    void set_residual(std::span<float> device_values, std::span<const float> residual) override {
        if (all_reduce_) all_reduce_->set_residual(device_values, residual);
    }

    bool is_joined(std::int64_t number) const { return number <= joined_; }
    /// Makes later work of the device wait for all all-reduces started so far, unless it already
    /// waits for all-reduce `number`, counted from 1.
    void join(std::int64_t number);

private:
    void wait_for_step_end();

    int size_;
    double wait_seconds_;
    cudaStream_t device_stream_;
    HighPriorityStream all_reduce_stream_;
    StreamEvent gradients_ready_;
    StreamEvent sums_ready_;
    StreamEvent step_end_;
    AllReduceTimes times_;
    bool has_step_end_ = false;  // step_end_ is the end of an earlier step
    std::int64_t started_ = 0;
    std::int64_t joined_ = 0;     // all-reduces for which later work of the device waits
    std::string algorithm_text_;  // empty: NCCL's own all-reduce
    std::unique_ptr<DeviceAllReduce> all_reduce_;  // null: NCCL's own
    NcclGroup nccl_;  // destroyed first: its kernels use the members above
};

class NcclRequest final : public Request {
public:
    NcclRequest(NcclReducer& reducer, std::int64_t number) : reducer_(reducer), number_(number) {}
    ~NcclRequest() override {
        try {
            wait();
        } catch (const Error&) {
            // A later call, such as the end of the graph capture, reports the failure.
        }
    }
    bool test() override { return reducer_.is_joined(number_); }
    void wait() override { reducer_.join(number_); }

private:
    NcclReducer& reducer_;
    std::int64_t number_;
};

std::unique_ptr<Request> NcclReducer::start_all_reduce(std::span<float> device_values) {
    gradients_ready_.record(device_stream_);
    gradients_ready_.block(all_reduce_stream_.handle());
    // Make the request, whose destructor joins, before a call can fail: a graph capture cannot end
    // until this stream has joined the device's stream.
    auto request = std::make_unique<NcclRequest>(*this, ++started_);
    times_.begin_all_reduce(all_reduce_stream_.handle());
    if (all_reduce_) {
        all_reduce_->enqueue(nccl_, device_values, all_reduce_stream_.handle());
    } else {
        nccl_.enqueue_sum(device_values, all_reduce_stream_.handle());
    }
    times_.end_all_reduce(all_reduce_stream_.handle());
    return request;
}

void NcclReducer::join(std::int64_t number) {
    if (is_joined(number)) return;
    sums_ready_.record(all_reduce_stream_.handle());
    times_.begin_wait(device_stream_);
    sums_ready_.block(device_stream_);
    times_.end_wait(device_stream_);
    joined_ = started_;
}

void NcclReducer::check() {
    step_end_.record(device_stream_);
    wait_for_step_end();
}

/// Waits for the previous step. The first call waits for this step, which may allocate memory.
void NcclReducer::end_step() {
    if (all_reduce_) all_reduce_->end_step(device_stream_);
    if (!has_step_end_) step_end_.record(device_stream_);
    wait_for_step_end();
    step_end_.record(device_stream_);
    has_step_end_ = true;
}

void NcclReducer::wait_for_step_end() {
    nccl_.wait_until([this] { return step_end_.is_complete(); }, "work of the device",
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
