// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/mpi_world.hpp>
#include <hpcai/context/devices.hpp>
#include <hpcai/records/run_record.hpp>

/// The facts that the ranks of a launch exchange before a run.
namespace hpcai::launch {

/// Returns the facts of every rank's device, by world rank. Collective.
std::vector<context::RankFacts> gather_rank_facts(const device::Device& device,
                                                  comm::Communicator& everyone);

/// Returns the guarantee of bitwise-equal results for groups of `degree` ranks: the weakest
/// guarantee of all ranks' devices, with the conditions of the devices and of the all-reduce.
DeterminismRecord describe_determinism(bool requested, std::span<const context::RankFacts> ranks,
                                       int degree);

/// Checks that all ranks run the same executable and MPI library. Throws Error(launch) on all
/// ranks, naming the ranks that differ and their hosts. Returns the SHA-256 of this rank's
/// executable, or "unreadable". Collective.
std::string check_programs(comm::StartUp& start_up);

}  // namespace hpcai::launch
