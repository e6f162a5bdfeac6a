// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/mpi_world.hpp>

/// The MPI world of the whole program, which tests/mpi/main.cpp creates before the first test.
namespace hpcai::mpi_tests {

struct World {
    comm::MpiWorld& mpi;
    comm::Communicator& everyone;    // all ranks; split it for more
    std::vector<std::string> hosts;  // [node]
    std::vector<int> node_of_world_rank;
};

World& world();

/// Calls divide their data after this many elements in tests, so that small tests also test the
/// division.
inline constexpr std::size_t kLargestCount = 1000;

}  // namespace hpcai::mpi_tests
