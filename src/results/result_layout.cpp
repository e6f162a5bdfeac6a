// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <system_error>

#include <fmt/core.h>

#include <hpcai/base/text.hpp>
#include <hpcai/results/result_layout.hpp>
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

void remove_group_checkpoints(const std::filesystem::path& output, int group) noexcept {
    try {
        std::error_code error;
        std::filesystem::remove_all(checkpoint_directory(output, group), error);
    } catch (const std::exception&) {
        // A remaining checkpoint only occupies space.
    }
}

}  // namespace hpcai::results
