// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <hpcai/base/clock.hpp>
#include <hpcai/comm/tensor_parallel_exchange.hpp>

namespace hpcai::comm {
namespace {

// The tag is next to those of the messages between stages.
constexpr int kPartTag = 8195;

}  // namespace

void TensorParallelExchange::connect(Communicator& group, std::vector<int> ranks) {
    ensure(std::ssize(ranks) == parts_ && ranks[part_] == group.rank(), "{} ranks for {} parts",
           ranks.size(), parts_);
    group_ = &group;
    ranks_ = std::move(ranks);
}

/// Gives each message its place.
void TensorParallelExchange::lay_out(const device::PartMessages& messages) {
    std::size_t bytes = 0;
    for (int part = 0; part < parts_; ++part) {
        if (part != part_) bytes += messages.bytes_to(part) + messages.bytes_from(part);
    }
    if (buffer_ == nullptr || buffer_->size() < bytes) {
        buffer_ = std::make_shared<std::vector<std::byte>>(bytes);
    }
    std::span<std::byte> rest(*buffer_);
    const auto next = [&](std::size_t size) {
        const std::span<std::byte> place = rest.first(size);
        rest = rest.subspan(size);
        return place;
    };
    letters_.assign(static_cast<std::size_t>(parts_), {});
    for (int part = 0; part < parts_; ++part) {
        if (part == part_) continue;
        letters_[part] = {next(messages.bytes_to(part)), next(messages.bytes_from(part))};
    }
}

void TensorParallelExchange::carry() {
    sends_.clear();
    receives_.clear();
    for (int part = 0; part < parts_; ++part) {
        if (part == part_) continue;
        const auto& [sent, received] = letters_[part];
        const int rank = ranks_[part];
        if (!sent.empty()) sends_.push_back({rank, sent});
        if (!received.empty()) receives_.push_back({rank, received});
        accounting_.bytes_sent += static_cast<std::int64_t>(sent.size());
    }
    const Stopwatch watch;
    try {
        const auto request = group_->start_exchange(sends_, receives_, kPartTag);
        group_->wait_until([&] { return request->test(); });
    } catch (...) {
        group_->keep(std::exchange(buffer_, nullptr));  // others may still send into it
        throw;
    }
    accounting_.wait_seconds += watch.seconds();
}

void TensorParallelExchange::exchange(device::PartMessages& messages) {
    ensure(group_ != nullptr, "an exchange between parts that are not connected");
    lay_out(messages);
    for (int part = 0; part < parts_; ++part) {
        if (part == part_) continue;
        messages.write(part, letters_[part].sent);
    }
    carry();
    for (int part = 0; part < parts_; ++part) {
        messages.read(part, letters_[part].received);
    }
}

}  // namespace hpcai::comm
