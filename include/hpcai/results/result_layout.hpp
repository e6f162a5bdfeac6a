// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

/// Paths in a result directory, its checkpoints, and the command that resumes its run.
namespace hpcai::results {

/// Returns groups/<group> in a result directory.
std::filesystem::path group_directory(const std::filesystem::path& output, int group);

/// Returns groups/<group>/flight, the folder of flight records.
std::filesystem::path flight_directory(const std::filesystem::path& output, int group);

/// Returns groups/<group>/trials/<sequence>.safetensors, the weights of a trial, which exist while
/// the search runs.
std::filesystem::path trial_weights(const std::filesystem::path& output, int group, int sequence);

/// Returns groups/<group>/trials/<sequence>.npy, the classes that a trial has predicted.
std::filesystem::path trial_classes(const std::filesystem::path& output, int group, int sequence);

/// Key in the environment record: the placement_options() of the run's launcher, separated by
/// blanks. Not recorded if there are none.
inline constexpr const char* kLauncherFact = "launcher";

inline constexpr const char* kLatestName = "latest";  // links to the run that started last

/// Returns where the link `latest` leads if `directory` is such a link, which a later run may
/// replace; else `directory`.
std::filesystem::path behind_latest(const std::filesystem::path& directory);

/// Returns those words of mpirun's command line that are safe to store and to repeat in another
/// job: --oversubscribe and --allow-run-as-root; also --bind-to, --map-by and --rank-by, each if
/// its value has only letters, digits and :=,._- in it. Options may begin with one hyphen.
std::vector<std::string> placement_options(const std::vector<std::string>& words);

/// Returns the command that resumes a run of `ranks` ranks, such as "mpirun -np 4 hpcai500 resume
/// DIR". Repeats the value of kLauncherFact in `environment` after "mpirun" if it consists of
/// placement_options() only.
std::string resume_command(int ranks, const std::map<std::string, std::string>& environment,
                           const std::filesystem::path& output);

/// Returns checkpoints/<group> in a result directory.
std::filesystem::path checkpoint_directory(const std::filesystem::path& output, int group);

/// Returns groups/<group>/checkpoints, the folder of a finished group's kept checkpoints.
std::filesystem::path kept_checkpoint_directory(const std::filesystem::path& output, int group);

/// Links the files of the checkpoint of `step` durably in kept_checkpoint_directory(), unless an
/// earlier launch has moved it there; without hard links, moves it. Throws Error(usage) with the
/// path if it does not exist or cannot be moved.
void keep_checkpoint(const std::filesystem::path& output, int group, std::int64_t step);

/// Removes the checkpoints of a group. Must be called after the group has stored its results and no
/// rank writes checkpoints any more. Ignores files that cannot be removed.
void remove_group_checkpoints(const std::filesystem::path& output, int group) noexcept;

/// Returns the step of the newest checkpoint that all `ranks` ranks of the group have marked as
/// complete and that is not later than step `max_step`; 0 if there is none. Throws the errors of
/// training::list_checkpoints.
std::int64_t last_checkpoint(const std::filesystem::path& output, int group, int ranks,
                             std::int64_t max_step = std::numeric_limits<std::int64_t>::max());

}  // namespace hpcai::results
