// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "world.hpp"

namespace hpcai::mpi_tests {

namespace {

World* the_world = nullptr;

/// What ranks other than 0 say: nothing but their failures.
class FailurePrinter final : public testing::EmptyTestEventListener {
public:
    explicit FailurePrinter(int rank) : rank_(rank) {}

    void OnTestPartResult(const testing::TestPartResult& result) override {
        if (!result.failed()) return;
        const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
        fmt::print(stderr, "rank {}, {}.{}: {}:{}: {}\n", rank_,
                   test == nullptr ? "" : test->test_suite_name(),
                   test == nullptr ? "" : test->name(),
                   result.file_name() == nullptr ? "" : result.file_name(), result.line_number(),
                   result.message());
    }

private:
    int rank_;
};

int run(comm::MpiWorld& mpi) {
    comm::StartUp start = mpi.start_up();
    const std::vector<std::string> hostnames = start.hostnames();
    const std::vector<int> nodes = start.node_of_world_rank();
    const std::unique_ptr<comm::Communicator> everyone = std::move(start).split(0, mpi.rank());
    World world{mpi, *everyone, hostnames, nodes};
    the_world = &world;
    if (mpi.rank() != 0) {
        testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
        delete listeners.Release(listeners.default_result_printer());
        listeners.Append(new FailurePrinter(mpi.rank()));
    }
    std::array<double, 1> failed{RUN_ALL_TESTS() == 0 ? 0.0 : 1.0};
    everyone->all_reduce_max(failed);
    the_world = nullptr;
    return failed[0] == 0.0 ? 0 : 1;
}

}  // namespace

World& world() {
    return *the_world;
}

}  // namespace hpcai::mpi_tests

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    hpcai::comm::MpiWorld mpi({.wait_seconds = 30,
                               .finalize_seconds = 30,
                               .largest_count = hpcai::mpi_tests::kLargestCount});
    int failed = 1;
    try {
        failed = hpcai::mpi_tests::run(mpi);
    } catch (const std::exception& error) {
        fmt::print(stderr, "rank {}: {}\n", mpi.rank(), error.what());
        mpi.abort(hpcai::ExitCode::internal);
    }
    mpi.finish(hpcai::ExitCode::internal);
    return failed;
}
