// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace hpcai::comm {

/// The value of an environment variable, or null; `std::getenv` fits.
using EnvironmentLookup = std::function<const char*(const char* name)>;

/// Refuses a program that was meant to be one of several ranks but runs alone, as happens when it
/// is started without an MPI launcher, or by one that its MPI library does not know. Throws
/// Error(launch) with the corrected form of `command_line` when the world has one rank
/// (`world_size` absent: before MPI_Init, where only a start without any launcher is known to be
/// alone) while OMPI_COMM_WORLD_SIZE, PMI_SIZE or SLURM_NTASKS says more. A launcher that says one
/// is believed.
void check_launch(std::optional<int> world_size, const EnvironmentLookup& environment,
                  const std::string& command_line = "hpcai500 run --config FILE");

/// How many ranks a launcher says that this program is one of; 1 where none says so.
int launched_ranks(const EnvironmentLookup& environment);

/// Whether Slurm's srun has started this rank, and no mpirun inside an allocation.
bool started_by_srun(const EnvironmentLookup& environment);

/// False when the launcher was told to let the other ranks live when one exits before the end of
/// MPI (mpirun --enable-recovery; srun with SLURM_KILL_BAD_EXIT=0, and one rank a node: Slurm's
/// plugin for PMIx ends the step where a rank dies beside another); unknown launchers are taken to
/// end them.
bool exit_ends_other_ranks(const EnvironmentLookup& environment);

}  // namespace hpcai::comm
