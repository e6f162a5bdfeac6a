// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/error_feedback.hpp>
#include <hpcai/comm/gradient_reducer.hpp>

namespace hpcai::comm {

namespace {

// Between those of other messages and that which announces failures. Sums as far apart as there are
// tags are never under way together.
constexpr int kFirstTag = 16384;
constexpr int kTags = 16000;

/// What the sum of some gradients needs, step after step.
struct SumMemory {
    AllReduceSchedule program;
    std::vector<float> copy;      // of values that do not lie in host memory
    std::vector<float> residual;  // of error feedback
    std::vector<std::byte> wire;
};
using SharedMemory = std::shared_ptr<SumMemory>;

/// Goes through a program, as far as messages have arrived.
class SumUnderWay {
public:
    SumUnderWay(Communicator& group, const AllReduceOptions& options, SharedMemory memory,
                std::span<float> values, int tag)
        : group_(group),
          options_(options),
          format_(options.format),
          memory_(std::move(memory)),
          values_(values),
          tag_(tag) {}
    ~SumUnderWay() {
        if (!is_done()) group_.keep(memory_);  // others may still send into it
    }
    SumUnderWay(const SumUnderWay&) = delete;
    SumUnderWay& operator=(const SumUnderWay&) = delete;

    bool is_done() const { return step_ == memory_->program.steps.size(); }
    /// After a throw: what was begun must not begin again.
    bool is_broken() const { return is_broken_; }
    const SentBytes& sent() const { return sent_; }
    std::span<const float> values() const { return values_; }

    bool advance() {
        ensure(!is_broken_, "a sum that failed goes on");
        is_broken_ = true;
        const bool is_complete = go_on();
        is_broken_ = false;
        return is_complete;
    }

private:
    bool go_on() {
        while (!is_done()) {
            const SumStep& step = memory_->program.steps[step_];
            if (!exchange_) begin(step);
            if (!exchange_->test()) return false;
            exchange_.reset();
            for (const WirePiece& piece : step.add) {
                add_decoded(format_, wire(piece), part(piece.values));
            }
            for (const WirePiece& piece : step.decode) {
                decode(format_, wire(piece), part(piece.values));
            }
            ++step_;
        }
        return true;
    }

    void begin(const SumStep& step) {
        for (const WirePiece& piece : step.encode) {
            const std::span<float> residual(memory_->residual);
            encode(format_, part(piece.values), wire(piece),
                   residual.empty() ? residual
                                    : residual.subspan(piece.values.begin, piece.values.count()));
        }
        std::vector<Outgoing> sends;
        std::vector<Incoming> receives;
        const std::vector<int>& nodes = options_.node_of_rank;
        for (const WireMessage& one : step.sends) {
            sends.push_back({one.rank, wire(one)});
            sent_.add_message(one.bytes, nodes[one.rank] != nodes[group_.rank()]);
        }
        for (const WireMessage& one : step.receives) receives.push_back({one.rank, wire(one)});
        exchange_ = group_.start_exchange(sends, receives, tag_);
    }

    std::span<float> part(const Range& range) const {
        return values_.subspan(range.begin, range.count());
    }
    template <typename Bytes>
    std::span<std::byte> wire(const Bytes& bytes) const {
        return std::span(memory_->wire).subspan(bytes.offset, bytes.bytes);
    }

    Communicator& group_;
    const AllReduceOptions& options_;
    WireFormat format_;
    SharedMemory memory_;
    std::span<float> values_;
    int tag_;
    std::size_t step_ = 0;
    SentBytes sent_;
    bool is_broken_ = false;
    std::unique_ptr<Request> exchange_;  // goes before the memory
};

class PointToPointReducer final : public GradientReducer, public ErrorFeedback {
public:
    PointToPointReducer(Communicator& group, device::Device* device,
                        const AllReduceOptions& options)
        : group_(group), device_(device), options_(options) {
        ensure(options.node_of_rank.size() == static_cast<std::size_t>(group.size()),
               "nodes of {} ranks of {}", options.node_of_rank.size(), group.size());
        place_in_sum(options_, group.rank());
    }

    int size() const override { return group_.size(); }
    std::string description() const override {
        return fmt::format("mpi{}, {} in {}", device_ == nullptr ? "" : " through host memory",
                           name_of(options_.algorithm), name_of(options_.format));
    }
    std::unique_ptr<Request> start_sum(std::span<float> device_values) override;
    bool can_be_recorded() const override { return group_.size() == 1; }
    void check() override {}  // a sum that has been waited for has been made
    std::optional<SentBytes> sent() const override { return sent_; }
    void end_step() override;
    void leave_out_step() override { is_left_out_ = true; }
    std::vector<float> residual_of(std::span<float> device_values) override {
        return memory_of(device_values)->residual;
    }
    void set_residual(std::span<float> device_values, std::span<const float> residual) override;

    void wait_for(SumUnderWay& sum) {
        group_.wait_until([&] {
            // A later sum may advance, because another rank may wait for what it sends.
            for (SumUnderWay* one : under_way_) one->advance();
            return sum.is_done();
        });
    }
    /// No more of it, which has been made unless it is broken.
    void leave(SumUnderWay& sum);

private:
    SharedMemory memory_of(std::span<const float> device_values);

    Communicator& group_;
    device::Device* device_;
    AllReduceOptions options_;
    std::map<std::pair<const float*, std::size_t>, SharedMemory> memories_;
    std::vector<SumUnderWay*> under_way_;  // in the order of their starts
    std::int64_t started_ = 0;
    SentBytes sent_;
    bool is_left_out_ = false;  // the step: one of its sums is not finite, or it was said
};

class ExchangedSum final : public Request {
public:
    ExchangedSum(PointToPointReducer& reducer, device::Device* device,
                 std::span<float> device_values, std::unique_ptr<SumUnderWay> sum,
                 SharedMemory memory)
        : reducer_(reducer),
          device_(device),
          device_values_(device_values),
          memory_(std::move(memory)),
          sum_(std::move(sum)) {}
    ~ExchangedSum() override {
        try {
            if (!sum_->is_broken()) wait();
        } catch (const std::exception&) {
            // Whoever uses the group next gets it again.
        }
        if (!has_left_) reducer_.leave(*sum_);
    }

    bool test() override { return sum_->advance(); }

    void wait() override {
        if (done_) return;
        done_ = true;
        reducer_.wait_for(*sum_);
        has_left_ = true;
        reducer_.leave(*sum_);
        if (device_ == nullptr) return;
        device_->upload(device_values_.data(), std::as_bytes(std::span(memory_->copy)));
    }

private:
    PointToPointReducer& reducer_;
    device::Device* device_;
    std::span<float> device_values_;
    SharedMemory memory_;
    std::unique_ptr<SumUnderWay> sum_;
    bool done_ = false, has_left_ = false;
};

void PointToPointReducer::leave(SumUnderWay& sum) {
    std::erase(under_way_, &sum);
    sent_ += sum.sent();
    if (options_.format != WireFormat::int8) return;
    is_left_out_ |= std::ranges::any_of(sum.values(), [](float v) { return !std::isfinite(v); });
}

/// What rounding took away in a step that is left out is of no use to the next: its gradients may
/// have been hundreds of times as large, and the loss scale falls behind it. Where the scale
/// doubles, after thousands of good steps, residuals stay and count half, once: no more is lost
/// than half of one step's rounding (SumPrograms.ErrorFeedbackLosesLittleWhereTheLossScaleDoubles).
void PointToPointReducer::end_step() {
    if (!std::exchange(is_left_out_, false)) return;
    for (const auto& [values, memory] : memories_) std::ranges::fill(memory->residual, 0.0F);
}

std::unique_ptr<Request> PointToPointReducer::start_sum(std::span<float> device_values) {
    SharedMemory memory = memory_of(device_values);
    std::span<float> values = device_values;
    if (device_ != nullptr) {
        values = memory->copy;
        device_->download(std::as_writable_bytes(values), device_values.data());
    }
    const int tag = kFirstTag + static_cast<int>(started_++ % kTags);
    auto sum = std::make_unique<SumUnderWay>(group_, options_, memory, values, tag);
    under_way_.push_back(sum.get());
    auto request = std::make_unique<ExchangedSum>(*this, device_, device_values, std::move(sum),
                                                  std::move(memory));
    request->test();
    return request;
}

/// The same memory in every step.
SharedMemory PointToPointReducer::memory_of(std::span<const float> device_values) {
    SharedMemory& memory = memories_[{device_values.data(), device_values.size()}];
    if (!memory) {
        memory = std::make_shared<SumMemory>();
        memory->program = make_all_reduce_schedule(options_, group_.rank(), device_values.size());
        memory->wire.resize(memory->program.wire_bytes);
        if (device_ != nullptr) memory->copy.resize(device_values.size());
        if (options_.format == WireFormat::int8) memory->residual.resize(device_values.size());
    }
    ensure(memory.use_count() == 1, "the sum of these gradients is still under way");
    return memory;
}

void PointToPointReducer::set_residual(std::span<float> device_values,
                                       std::span<const float> residual) {
    std::vector<float>& mine = memory_of(device_values)->residual;
    ensure(mine.size() == residual.size(), "a residual of {} values for {}", residual.size(),
           mine.size());
    std::ranges::copy(residual, mine.begin());
}

}  // namespace

std::unique_ptr<GradientReducer> make_exchange_reducer(Communicator& group, device::Device* device,
                                                       const AllReduceOptions& options) {
    return std::make_unique<PointToPointReducer>(group, device, options);
}

std::unique_ptr<GradientReducer> make_mpi_reducer(Communicator& group) {
    AllReduceOptions options;
    options.node_of_rank.resize(static_cast<std::size_t>(group.size()));
    return make_exchange_reducer(group, nullptr, options);
}

}  // namespace hpcai::comm
