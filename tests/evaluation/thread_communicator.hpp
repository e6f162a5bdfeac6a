// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/communicator.hpp>

namespace hpcai::evaluation {

/// State shared by the threads of one fake run: the address of each one's buffer while all wait.
struct ThreadTeam {
    explicit ThreadTeam(int size)
        : meeting(size),
          floats(static_cast<std::size_t>(size)),
          doubles(floats.size()),
          bytes(floats.size()) {}
    std::barrier<> meeting;
    std::vector<std::span<float>> floats;
    std::vector<std::span<double>> doubles;
    std::vector<std::span<const std::byte>> bytes;
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::tuple<int, int, int>, std::span<const std::byte>> mailboxes;  // from, to, tag
    std::size_t largest_message = 0;  // elements of a reduce_sum, bytes of a send
};

/// A communicator whose ranks are threads. Sums are formed in rank order, and a send waits for its
/// receive. Has the collectives that votes and fusion use.
class ThreadCommunicator : public comm::Communicator {
public:
    ThreadCommunicator(ThreadTeam& team, int rank) : team_(team), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(team_.floats.size()); }

    void reduce_sum(std::span<float> values, int root) override {
        team_.floats[static_cast<std::size_t>(rank_)] = values;
        team_.meeting.arrive_and_wait();
        if (rank_ == root) {
            team_.largest_message = std::max(team_.largest_message, values.size());
            std::vector<float> sums(values.size());
            for (const auto& part : team_.floats) {
                ensure(part.size() == sums.size(), "a reduction of different sizes");
                std::transform(sums.begin(), sums.end(), part.begin(), sums.begin(), std::plus<>());
            }
            std::ranges::copy(sums, values.begin());
        }
        team_.meeting.arrive_and_wait();
    }

    void all_reduce_max(std::span<double> values) override {
        team_.doubles[static_cast<std::size_t>(rank_)] = values;
        team_.meeting.arrive_and_wait();
        std::vector<double> highest(values.begin(), values.end());
        for (const auto& part : team_.doubles) {
            for (std::size_t index = 0; index < highest.size(); ++index) {
                highest[index] = std::max(highest[index], part[index]);
            }
        }
        team_.meeting.arrive_and_wait();
        std::ranges::copy(highest, values.begin());
    }

    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
        team_.bytes[static_cast<std::size_t>(rank_)] = mine;
        team_.meeting.arrive_and_wait();
        ensure(all.size() == mine.size() * team_.bytes.size(), "a gathering of another size");
        auto target = all.begin();
        for (const auto& part : team_.bytes) {
            ensure(part.size() == mine.size(), "a gathering of different sizes");
            target = std::ranges::copy(part, target).out;
        }
        team_.meeting.arrive_and_wait();
    }

    void broadcast(std::span<std::byte> bytes, int root) override {
        team_.bytes[static_cast<std::size_t>(rank_)] = bytes;
        team_.meeting.arrive_and_wait();
        const std::span<const std::byte> from = team_.bytes[static_cast<std::size_t>(root)];
        ensure(from.size() == bytes.size(), "a broadcast of different sizes");
        if (rank_ != root) std::ranges::copy(from, bytes.begin());
        team_.meeting.arrive_and_wait();
    }

    void send(std::span<const std::byte> bytes, int destination, int tag) override {
        const std::tuple address{rank_, destination, tag};
        std::unique_lock lock(team_.mutex);
        team_.largest_message = std::max(team_.largest_message, bytes.size());
        team_.mailboxes[address] = bytes;
        team_.changed.notify_all();
        team_.changed.wait(lock, [&] { return !team_.mailboxes.contains(address); });
    }

    void receive(std::span<std::byte> bytes, int source, int tag) override {
        const std::tuple address{source, rank_, tag};
        std::unique_lock lock(team_.mutex);
        team_.changed.wait(lock, [&] { return team_.mailboxes.contains(address); });
        const std::span<const std::byte> message = team_.mailboxes[address];
        ensure(message.size() == bytes.size(), "a message of another size");
        std::ranges::copy(message, bytes.begin());
        team_.mailboxes.erase(address);
        team_.changed.notify_all();
    }

    void all_reduce_sum(std::span<float>) override { refuse(); }
    void all_reduce_sum(std::span<double>) override { refuse(); }
    void all_reduce_sum(std::span<std::int64_t>) override { refuse(); }
    std::unique_ptr<comm::Request> start_exchange(std::span<const comm::Outgoing>,
                                                  std::span<const comm::Incoming>, int) override {
        refuse();
    }
    void wait_until(const std::function<bool()>&) override { refuse(); }
    void barrier() override { refuse(); }
    std::unique_ptr<comm::Communicator> split(int, int) override { refuse(); }

private:
    [[noreturn]] static void refuse() {
        throw Error(ExitCode::internal, "votes and fusion do not use this call");
    }

    ThreadTeam& team_;
    int rank_;
};

/// Runs `member` as `size` ranks and rethrows the exception of the lowest failed rank. Returns the
/// largest reduction (elements) or message (bytes).
inline std::size_t run_members(int size, const std::function<void(comm::Communicator&)>& member) {
    ThreadTeam team(size);
    std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size));
    {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < size; ++rank) {
            threads.emplace_back([&, rank] {
                ThreadCommunicator communicator(team, rank);
                try {
                    member(communicator);
                } catch (...) {
                    failures[static_cast<std::size_t>(rank)] = std::current_exception();
                    team.meeting.arrive_and_drop();
                }
            });
        }
    }
    for (const auto& failure : failures) {
        if (failure) std::rethrow_exception(failure);
    }
    return team.largest_message;
}

}  // namespace hpcai::evaluation
