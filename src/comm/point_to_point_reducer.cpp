// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/core.h>

#include <hpcai/comm/gradient_reducer.hpp>

namespace hpcai::comm {
namespace {

// Tags of all-reduces of gradients. BatchNorm statistics, all-gathers and failures have higher
// tags, other messages lower ones. Two all-reduces with the same tag never run at the same time.
constexpr int kFirstTag = 16384;
constexpr int kTags = 16000;

/// The memory of one all-reduce, reused in every step.
struct AllReduceMemory {
    AllReduceSchedule schedule;
    std::vector<float> on_host;   // copy of the values; empty: they are in host memory
    std::vector<float> residual;  // of error feedback; empty: none
    std::vector<std::byte> wire;
};
using SharedMemory = std::shared_ptr<AllReduceMemory>;

class PointToPointRequest;

class PointToPointReducer final : public GradientReducer {
public:
    PointToPointReducer(Communicator& group, device::Device* device,
                        const AllReduceOptions& options)
        : group_(group), device_(device), options_(options) {
        ensure(options.node_of_rank.size() == static_cast<std::size_t>(group.size()),
               "got the nodes of {} ranks, expected {}", options.node_of_rank.size(), group.size());
        all_reduce_topology(options_, group.rank());
        if (options.algorithm == AllReduceAlgorithm::native) sent_.reset();
    }

    int size() const override { return group_.size(); }
    std::string description() const override {
        return fmt::format("mpi{}, {} in {}", device_ == nullptr ? "" : " through host memory",
                           name_of(options_.algorithm), name_of(options_.format));
    }
    std::unique_ptr<Request> start_all_reduce(std::span<float> device_values) override;
    bool can_be_recorded() const override { return group_.size() == 1; }
    void check() override {}  // wait() of a request completes its all-reduce
    std::optional<SentBytes> sent() const override { return sent_; }
    void end_step() override;
    void skip_step() override { is_skipped_ = true; }
    std::vector<float> residual_of(std::span<float> device_values) override {
        return memory_of(device_values)->residual;
    }
    void set_residual(std::span<float> device_values, std::span<const float> residual) override;

    void wait_for(const PointToPointRequest& request);
    /// Removes an all-reduce that is complete or has failed.
    void remove(PointToPointRequest& request);
    Communicator& group() { return group_; }
    const AllReduceOptions& options() const { return options_; }

private:
    SharedMemory memory_of(std::span<const float> device_values);

    Communicator& group_;
    device::Device* device_;
    AllReduceOptions options_;
    std::map<std::pair<const float*, std::size_t>, SharedMemory> memories_;
    std::vector<PointToPointRequest*> in_flight_;  // in the order of their starts
    std::int64_t started_ = 0;
    std::optional<SentBytes> sent_ = SentBytes{};
    bool is_skipped_ = false;  // a sum was not finite or skip_step() was called
};

/// An all-reduce in progress. test() advances its schedule as far as messages have arrived.
class PointToPointRequest final : public Request {
public:
    PointToPointRequest(PointToPointReducer& reducer, device::Device* device,
                        std::span<float> device_values, SharedMemory memory, int tag)
        : reducer_(reducer),
          device_(device),
          device_values_(device_values),
          memory_(std::move(memory)),
          values_(device == nullptr ? device_values : std::span(memory_->on_host)),
          tag_(tag) {}
    ~PointToPointRequest() override {
        try {
            if (!is_broken_) wait();
        } catch (const std::exception&) {
            // The next call on the group throws the failure again.
        }
        if (!was_removed_) reducer_.remove(*this);
        if (!is_done()) reducer_.group().keep_alive(memory_);  // late messages may arrive
    }

    bool is_done() const { return step_ == memory_->schedule.steps.size(); }
    const SentBytes& sent() const { return sent_; }
    std::span<const float> values() const { return values_; }

    bool test() override {
        ensure(!is_broken_, "an all-reduce that failed cannot continue");
        is_broken_ = true;  // stays true if advance() throws
        const bool is_complete = advance();
        is_broken_ = false;
        return is_complete;
    }

    void wait() override {
        if (std::exchange(has_waited_, true)) return;
        reducer_.wait_for(*this);
        was_removed_ = true;
        reducer_.remove(*this);
        if (device_ == nullptr) return;
        device_->upload(device_values_.data(), std::as_bytes(values_));
    }

private:
    bool advance() {
        const WireFormat format = reducer_.options().format;
        for (; !is_done(); ++step_) {
            const ScheduleStep& step = memory_->schedule.steps[step_];
            if (!exchange_) begin(step);
            if (exchange_ && !exchange_->test()) return false;
            exchange_.reset();
            for (const WirePiece& piece : step.add) {
                add_decoded(format, wire(piece), values_in(piece.values));
            }
            for (const WirePiece& piece : step.decode) {
                decode(format, wire(piece), values_in(piece.values));
            }
        }
        return true;
    }

    void begin(const ScheduleStep& step) {
        const std::span<float> residual(memory_->residual);
        for (const WirePiece& piece : step.encode) {
            encode(reducer_.options().format, values_in(piece.values), wire(piece),
                   residual.empty() ? residual
                                    : residual.subspan(piece.values.begin, piece.values.count()));
        }
        if (step.is_native) {
            const auto floats = [&](const WirePiece& piece) {
                return std::span(reinterpret_cast<float*>(wire(piece).data()), values_.size());
            };
            exchange_ = reducer_.group().start_all_reduce_sum(floats(step.encode.front()),
                                                              floats(step.decode.front()));
            return;
        }
        std::vector<Outgoing> sends;
        std::vector<Incoming> receives;
        const std::vector<int>& nodes = reducer_.options().node_of_rank;
        for (const WireMessage& message : step.sends) {
            sends.push_back({message.rank, wire(message)});
            sent_.add_message(message.bytes, nodes[message.rank] != nodes[reducer_.group().rank()]);
        }
        for (const auto& message : step.receives) receives.push_back({message.rank, wire(message)});
        exchange_ = reducer_.group().start_exchange(sends, receives, tag_);
    }

    std::span<float> values_in(const Range& range) const {
        return values_.subspan(range.begin, range.count());
    }
    template <typename PieceOrMessage>
    std::span<std::byte> wire(const PieceOrMessage& part) const {
        return std::span(memory_->wire).subspan(part.offset, part.bytes);
    }

    PointToPointReducer& reducer_;
    device::Device* device_;
    std::span<float> device_values_;
    SharedMemory memory_;
    std::span<float> values_;  // in host memory
    int tag_;
    std::size_t step_ = 0;
    SentBytes sent_;
    bool is_broken_ = false, has_waited_ = false, was_removed_ = false;
    std::unique_ptr<Request> exchange_;  // destroyed before the memory
};

void PointToPointReducer::wait_for(const PointToPointRequest& request) {
    group_.wait_until([&] {
        // Later all-reduces must advance too, because another rank may wait for their messages.
        for (PointToPointRequest* other : in_flight_) other->test();
        return request.is_done();
    });
}

void PointToPointReducer::remove(PointToPointRequest& request) {
    std::erase(in_flight_, &request);
    if (sent_) *sent_ += request.sent();
    if (options_.format != WireFormat::int8) return;
    is_skipped_ |= std::ranges::any_of(request.values(), [](float v) { return !std::isfinite(v); });
}

/// Clears the residuals after a skipped step, because its gradients may be far too large and its
/// loss scale is no longer used. Residuals are not rescaled when the loss scale doubles, which
/// happens once in thousands of steps. Each residual then counts only half. This error is at most
/// half of one step's rounding error (test
/// AllReduceSchedules.ErrorFeedbackLosesLittleWhereTheLossScaleDoubles).
void PointToPointReducer::end_step() {
    if (!std::exchange(is_skipped_, false)) return;
    for (const auto& [values, memory] : memories_) std::ranges::fill(memory->residual, 0.0F);
}

std::unique_ptr<Request> PointToPointReducer::start_all_reduce(std::span<float> device_values) {
    SharedMemory memory = memory_of(device_values);
    if (device_ != nullptr) {
        device_->download(std::as_writable_bytes(std::span(memory->on_host)), device_values.data());
    }
    const int tag = kFirstTag + static_cast<int>(started_++ % kTags);
    auto request = std::make_unique<PointToPointRequest>(*this, device_, device_values,
                                                         std::move(memory), tag);
    in_flight_.push_back(request.get());
    request->test();
    return request;
}

/// Returns the memory of the all-reduce of these values, the same in every step.
SharedMemory PointToPointReducer::memory_of(std::span<const float> device_values) {
    SharedMemory& memory = memories_[{device_values.data(), device_values.size()}];
    if (!memory) {
        memory = std::make_shared<AllReduceMemory>();
        memory->schedule = make_all_reduce_schedule(options_, group_.rank(), device_values.size());
        memory->wire.resize(memory->schedule.wire_bytes);
        if (device_ != nullptr) memory->on_host.resize(device_values.size());
        if (options_.format == WireFormat::int8) memory->residual.resize(device_values.size());
    }
    ensure(memory.use_count() == 1, "the all-reduce of these gradients is still in progress");
    return memory;
}

void PointToPointReducer::set_residual(std::span<float> device_values,
                                       std::span<const float> residual) {
    std::vector<float>& mine = memory_of(device_values)->residual;
    ensure(mine.size() == residual.size(), "got {} residuals, expected {}", residual.size(),
           mine.size());
    std::ranges::copy(residual, mine.begin());
}

}  // namespace

std::unique_ptr<GradientReducer> make_point_to_point_reducer(Communicator& group,
                                                             device::Device* device,
                                                             const AllReduceOptions& options) {
    return std::make_unique<PointToPointReducer>(group, device, options);
}

std::unique_ptr<GradientReducer> make_mpi_reducer(Communicator& group) {
    AllReduceOptions options;
    options.node_of_rank.resize(static_cast<std::size_t>(group.size()));
    return make_point_to_point_reducer(group, nullptr, options);
}

}  // namespace hpcai::comm
