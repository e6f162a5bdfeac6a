// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <hpcai/comm/communicator.hpp>

namespace hpcai::training {

/// The other end of the messages of one kind.
struct Route {
    int group_rank = 0;
    int tag = 0;
    std::size_t bytes = 0;  // of each message; 0: there are none
};

/// Bytes on their way, in memory that outlives the transport's use of it.
class Letter {
public:
    Letter(comm::Communicator& group, std::size_t bytes);
    ~Letter();
    Letter(const Letter&) = delete;
    Letter& operator=(const Letter&) = delete;

    std::span<std::byte> bytes() { return *bytes_; }
    void start_send(const Route& route);
    void start_receive(const Route& route);
    /// Lets the transport advance; true when nothing is on its way.
    bool test();

private:
    comm::Communicator& group_;
    std::shared_ptr<std::vector<std::byte>> bytes_;
    std::unique_ptr<comm::Request> request_;
};

/// Messages that this rank sends in a step; each has memory of its own until it has gone.
class Outbox {
public:
    explicit Outbox(comm::Communicator& group) : group_(group) {}

    /// Has `write` write a message and starts to send it.
    void send(const Route& route, const std::function<void(std::span<std::byte>)>& write);
    /// True when all have gone.
    bool test();
    std::int64_t bytes_sent() const { return bytes_sent_; }

private:
    comm::Communicator& group_;
    std::vector<std::unique_ptr<Letter>> letters_;
    std::int64_t bytes_sent_ = 0;
};

/// Messages of one route in a step, which come one after the other; the next is awaited while the
/// one before is used.
class Inbox {
public:
    Inbox(comm::Communicator& group, const Route& route);

    /// So many will come.
    void begin(int messages);
    bool test() { return letter_.test(); }
    /// Has `use` read the message that has come and awaits the next.
    void take(const std::function<void(std::span<const std::byte>)>& use);

private:
    Route route_;
    Letter letter_;
    int left_ = 0;
};

}  // namespace hpcai::training
