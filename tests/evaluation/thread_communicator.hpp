// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <barrier>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/communicator.hpp>

namespace hpcai::evaluation {

/// What the threads of one fake run share: where each one's buffer is while all wait.
struct ThreadTeam {
    explicit ThreadTeam(int size)
        : meeting(size), floats(static_cast<std::size_t>(size)), doubles(floats.size()) {}
    std::barrier<> meeting;
    std::vector<std::span<float>> floats;
    std::vector<std::span<double>> doubles;
    std::size_t largest_message = 0;  // elements of a reduce_sum
};

/// Ranks are threads, sums run in rank order. Has the collectives that votes use.
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

    void all_reduce_sum(std::span<float>) override { refuse(); }
    void all_reduce_sum(std::span<double>) override { refuse(); }
    void all_reduce_sum(std::span<std::int64_t>) override { refuse(); }
    std::unique_ptr<comm::Request> start_all_reduce_sum(std::span<float>) override { refuse(); }
    void broadcast(std::span<std::byte>, int) override { refuse(); }
    void all_gather(std::span<const std::byte>, std::span<std::byte>) override { refuse(); }
    void reduce_scatter_sum(std::span<const float>, std::span<float>) override { refuse(); }
    void send(std::span<const std::byte>, int, int) override { refuse(); }
    void receive(std::span<std::byte>, int, int) override { refuse(); }
    void barrier() override { refuse(); }
    std::unique_ptr<comm::Communicator> split(int, int) override { refuse(); }

private:
    [[noreturn]] static void refuse() {
        throw Error(ExitCode::internal, "a vote uses no such collective");
    }

    ThreadTeam& team_;
    int rank_;
};

/// Runs `member` as `size` ranks and rethrows the exception of the lowest rank that has one;
/// returns the largest reduction, in elements.
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
