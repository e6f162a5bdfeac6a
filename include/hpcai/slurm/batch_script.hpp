// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hpcai/slurm/batch_job.hpp>

/// Batch scripts of Slurm, PBS (OpenPBS, PBS Professional) and Flux, and time formats of Slurm.
/// Needs no library of these schedulers.
namespace hpcai::slurm {

/// Returns the seconds of a time as `sbatch --time` accepts it: "minutes", "minutes:seconds",
/// "hours:minutes:seconds", "days-hours", "days-hours:minutes", "days-hours:minutes:seconds".
/// Returns nothing for any other string and for more than 10 years.
std::optional<std::int64_t> time_limit_seconds(std::string_view text);

/// Returns the script for `sbatch`, `qsub` or `flux batch`. A restarted job finds its result
/// directory by job number or HPCAI500_RESULTS and resumes the run in it. After a launch, the
/// script exits with the code of `hpcai500 status`, with two exceptions if the launch wrote
/// nothing. If the launcher failed, the script exits with the launcher's code. Otherwise, if
/// `status` reports a stop, which is that of an earlier launch, it exits with 1. Throws
/// Error(usage) as directives() does, and for values that the script cannot contain, such as
/// control characters.
std::string batch_script(const BatchJob& job);

}  // namespace hpcai::slurm
