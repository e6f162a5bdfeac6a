// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <system_error>

#include <fmt/core.h>

#include <hpcai/base/text.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/training/checkpoint.hpp>

namespace hpcai::results {

std::filesystem::path group_directory(const std::filesystem::path& output, int group) {
    return output / "groups" / std::to_string(group);
}

std::filesystem::path flight_directory(const std::filesystem::path& output, int group) {
    return group_directory(output, group) / "flight";
}

std::string resume_command(int ranks, const std::map<std::string, std::string>& environment,
                           const std::filesystem::path& output) {
    const auto launcher = environment.find(kLauncherFact);
    return fmt::format("{} hpcai500 resume {}",
                       launcher == environment.end() ? fmt::format("mpirun -np {}", ranks)
                                                     : printable(launcher->second),
                       printable(shell_quote(output.string())));
}

std::filesystem::path checkpoint_directory(const std::filesystem::path& output, int group) {
    return output / "checkpoints" / std::to_string(group);
}

std::int64_t last_checkpoint(const std::filesystem::path& output, int group, int ranks,
                             std::int64_t max_step) {
    const auto folder = checkpoint_directory(output, group);
    for (const std::int64_t step : training::list_checkpoints(folder)) {
        bool is_complete = step <= max_step;
        for (int rank = 0; is_complete && rank < ranks; ++rank) {
            is_complete = training::has_marker({folder, "", rank, ranks}, step);
        }
        if (is_complete) return step;
    }
    return 0;
}

std::filesystem::path kept_checkpoint_directory(const std::filesystem::path& output, int group) {
    return group_directory(output, group) / "checkpoints";
}

void keep_checkpoint(const std::filesystem::path& output, int group, std::int64_t step) {
    const auto folder = kept_checkpoint_directory(output, group);
    const auto from =
        training::checkpoint_folder({checkpoint_directory(output, group), "", 0, 1}, step);
    const auto to = folder / from.filename();
    const bool exists = storage::path_exists(from);
    if (!exists && storage::path_exists(to)) return;
    require(exists, ExitCode::usage, "'{}' does not exist", from.string());
    storage::make_folder_durably(folder);
    std::error_code error;
    std::filesystem::remove_all(to, error);
    std::filesystem::rename(from, to, error);
    require(!error, ExitCode::usage, "'{}' cannot be moved to '{}': {}", from.string(),
            folder.string(), error.message());
    require(storage::try_sync(folder) && storage::try_sync(from.parent_path()), ExitCode::usage,
            "'{}' cannot be synced: {}", to.string(), std::strerror(errno));
}

void remove_group_checkpoints(const std::filesystem::path& output, int group) noexcept {
    try {
        std::error_code error;
        std::filesystem::remove_all(checkpoint_directory(output, group), error);
    } catch (const std::exception&) {
        // A remaining checkpoint only occupies space.
    }
}

}  // namespace hpcai::results
