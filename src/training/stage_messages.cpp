// SPDX-License-Identifier: Apache-2.0
#include "stage_messages.hpp"

#include <algorithm>

#include <hpcai/base/error.hpp>

namespace hpcai::training {

Letter::Letter(comm::Communicator& group, std::size_t bytes)
    : group_(group), bytes_(std::make_shared<std::vector<std::byte>>(bytes)) {}

Letter::~Letter() {
    if (request_ != nullptr) group_.keep(bytes_);
}

void Letter::start_send(const Route& route) {
    const comm::Outgoing message{route.group_rank, *bytes_};
    request_ = group_.start_exchange(std::span(&message, 1), {}, route.tag);
}

void Letter::start_receive(const Route& route) {
    const comm::Incoming message{route.group_rank, *bytes_};
    request_ = group_.start_exchange({}, std::span(&message, 1), route.tag);
}

bool Letter::test() {
    if (request_ != nullptr && request_->test()) request_.reset();
    return request_ == nullptr;
}

void Outbox::send(const Route& route, const std::function<void(std::span<std::byte>)>& write) {
    const auto is_free = [&](const std::unique_ptr<Letter>& letter) {
        return letter->bytes().size() == route.bytes && letter->test();
    };
    auto letter = std::ranges::find_if(letters_, is_free);
    if (letter == letters_.end()) {
        letters_.push_back(std::make_unique<Letter>(group_, route.bytes));
        letter = letters_.end() - 1;
    }
    write((*letter)->bytes());
    (*letter)->start_send(route);
    bytes_sent_ += static_cast<std::int64_t>(route.bytes);
}

bool Outbox::test() {
    bool have_gone = true;
    for (const std::unique_ptr<Letter>& letter : letters_) have_gone &= letter->test();
    return have_gone;
}

Inbox::Inbox(comm::Communicator& group, const Route& route)
    : route_(route), letter_(group, route.bytes) {}

void Inbox::begin(int messages) {
    ensure(left_ == 0, "{} messages of a step before were not read", left_);
    if (route_.bytes == 0) return;
    left_ = messages;
    letter_.start_receive(route_);
}

void Inbox::take(const std::function<void(std::span<const std::byte>)>& use) {
    ensure(left_ > 0 && letter_.test(), "no message has come");
    use(letter_.bytes());
    if (--left_ > 0) letter_.start_receive(route_);
}

}  // namespace hpcai::training
