// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace hpcai::comm {

/// Returns the value of an environment variable, or null, as `std::getenv` does.
using EnvironmentLookup = std::function<const char*(const char* name)>;

/// Rejects a process that should be one of several ranks but runs alone: it was started without an
/// MPI launcher, or by a launcher that its MPI library does not support. The expected number of
/// ranks is the first of OMPI_COMM_WORLD_SIZE, PMI_SIZE, FLUX_JOB_SIZE and SLURM_NTASKS that is
/// a positive number. Throws Error(launch) with the correct form of `command_line` if this number
/// is above 1 but the world has one rank. Without `world_size` (before MPI_Init), rejects only a
/// process without the rank variable of an MPI launcher.
void check_launch(std::optional<int> world_size, const EnvironmentLookup& environment,
                  const std::string& command_line = "hpcai500 run --config FILE");

/// Returns the number of ranks that the launcher's environment variables give; 1 without them.
int launched_ranks(const EnvironmentLookup& environment);

/// Whether Slurm's srun started this rank directly, not mpirun or Flux inside an allocation.
bool started_by_srun(const EnvironmentLookup& environment);

/// Whether the launcher's variables give this process a rank other than 0. False without them.
bool is_other_than_first_rank(const EnvironmentLookup& environment);

/// Whether the launcher ends all ranks if one exits before MPI_Finalize. True for unknown
/// launchers. False with mpirun --enable-recovery, and with srun if SLURM_KILL_BAD_EXIT=0 and each
/// node has one rank: Slurm's PMIx plugin ends all ranks if one dies on a node with other ranks.
bool exit_ends_other_ranks(const EnvironmentLookup& environment);

}  // namespace hpcai::comm
