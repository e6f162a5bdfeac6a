// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "support/test_program.hpp"
#include "world.hpp"

namespace hpcai::mpi_tests {

namespace {

World* the_world = nullptr;

/// The output of ranks other than 0: only their failures.
class FailurePrinter final : public testing::EmptyTestEventListener {
public:
    explicit FailurePrinter(int rank) : rank_(rank) {}

    void OnTestStart(const testing::TestInfo& test) override {
        name_ = fmt::format("{}.{}", test.test_suite_name(), test.name());
    }

    // GoogleTest holds a lock during this call, so requesting the current test would deadlock.
    void OnTestPartResult(const testing::TestPartResult& result) override {
        if (!result.failed()) return;
        fmt::print(stderr, "rank {}, {}: {}:{}: {}\n", rank_, name_,
                   result.file_name() == nullptr ? "" : result.file_name(), result.line_number(),
                   result.message());
    }

private:
    int rank_;
    std::string name_;  // of the running test
};

/// Makes a test that fails on some ranks fail on all of them, so that rank 0's result file includes
/// it.
class SharedFailures final : public testing::EmptyTestEventListener {
public:
    explicit SharedFailures(comm::Communicator& everyone) : everyone_(everyone) {}

    void OnTestEnd(const testing::TestInfo& test) override {
        const bool mine = test.result()->Failed();
        std::array<double, 1> failed{mine ? 1.0 : 0.0};
        everyone_.all_reduce_max(failed);
        if (failed[0] != 0 && !mine) ADD_FAILURE() << "failed on another rank";
    }

private:
    comm::Communicator& everyone_;
};

/// Makes rank 0 print the progress and write the result file of --gtest_output; every rank prints
/// its failures.
void listen(int rank, comm::Communicator& everyone) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    if (rank != 0) {
        delete listeners.Release(listeners.default_result_printer());
        delete listeners.Release(listeners.default_xml_generator());
        listeners.Append(new FailurePrinter(rank));
    } else {
        const char* mpirun = std::getenv("HPCAI500_MPIRUN");
        tests::print_commands_of_failures(
            fmt::format("env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                        "OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=1 "
                        "{} --bind-to none -n {} ",
                        mpirun == nullptr ? "mpirun" : mpirun, everyone.size()));
    }
    listeners.Append(
        new SharedFailures(everyone));  // the last listener is called first at a test's end
}

int run_tests(comm::MpiWorld& mpi) {
    comm::StartUp start = mpi.start_up();
    const std::vector<std::string> hosts = start.hosts();
    const std::vector<int> nodes = start.node_of_world_rank();
    const std::unique_ptr<comm::Communicator> everyone = std::move(start).split(0, mpi.rank());
    const std::unique_ptr<comm::Communicator> for_failures = everyone->split(0, mpi.rank());
    World world{mpi, *everyone, hosts, nodes};
    the_world = &world;
    listen(mpi.rank(), *for_failures);
    const int failed = tests::run_all_tests();
    the_world = nullptr;
    return failed;
}

comm::GroupStatus status_after_work(comm::Communicator& group, int number) {
    std::array<double, 1> one{1};
    try {
        group.all_reduce_sum(one);
    } catch (const Error& error) {
        return comm::GroupStatus::of(number, comm::GroupState::failed, error.code(), error.what());
    }
    return comm::GroupStatus::of(number, comm::GroupState::completed);
}

void print_ballot(const comm::AgreedMembers& agreed, double sum_of_world_ranks) {
    std::string states;
    for (const comm::GroupStatus& status : agreed.decision.statuses()) {
        states += fmt::format(" {}:{}", static_cast<int>(status.state),
                              static_cast<int>(status.exit_code));
    }
    fmt::print("VOTERS {} SUM {} STATES{}\n", fmt::join(agreed.decision.voters(), ","),
               sum_of_world_ranks, states);
    std::fflush(stdout);
}

/// Not a separate test: tests/comm/rank_death_test.cpp starts it and reads its output. Pairs of
/// ranks are groups, whose leaders are the even ranks. `victim` dies without a message; the other
/// groups vote.
void vote_after_the_death_of(int victim, comm::MpiWorld& mpi) {
    const int group_number = mpi.rank() / 2;
    const auto group = mpi.start_up().split(group_number, mpi.rank());
    if (mpi.rank() == victim) std::raise(SIGKILL);
    const comm::GroupStatus mine = status_after_work(*group, group_number);
    if (mpi.rank() % 2 != 0) {
        mpi.wait_for_exit_permit(mpi.rank() - 1, 3);
        return;
    }
    std::vector<int> leaders;
    for (int rank = 0; rank < mpi.size(); rank += 2) leaders.push_back(rank);
    const comm::AgreedMembers agreed =
        mpi.agree_on_members(mine, leaders, {.status_seconds = 4, .reply_seconds = 3});
    if (agreed.leaders) {
        std::array<double, 1> sum{static_cast<double>(mpi.rank())};
        agreed.leaders->all_reduce_sum(sum);
        if (agreed.leaders->rank() == 0) print_ballot(agreed, sum[0]);
    }
    mpi.release(std::array{mpi.rank() + 1});
}

constexpr std::string_view kVictim = "--victim=";

int run(int argc, char** argv) {
    const std::string_view argument = argc > 1 ? argv[1] : "";
    const bool with_victim = argument.starts_with(kVictim);
    comm::MpiWorld mpi({.wait_seconds = with_victim ? 1.5 : 30.0,
                        .finalize_seconds = with_victim ? 1.0 : 30.0,
                        .largest_count = kLargestCount});
    try {
        if (!with_victim) return run_tests(mpi);
        vote_after_the_death_of(std::stoi(std::string(argument.substr(kVictim.size()))), mpi);
    } catch (const std::exception& error) {
        fmt::print(stderr, "rank {}: {}\n", mpi.rank(), error.what());
        mpi.abort(ExitCode::internal);
    }
    return 0;
}

}  // namespace

World& world() {
    return *the_world;
}

}  // namespace hpcai::mpi_tests

int main(int argc, char** argv) {
    hpcai::tests::complete_environment(argv);
    testing::InitGoogleTest(&argc, argv);
    return hpcai::mpi_tests::run(argc, argv);
}
