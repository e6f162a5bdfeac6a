// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <hpcai/base/shell.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/results/result_layout.hpp>

namespace hpcai::results {

std::filesystem::path group_directory(const std::filesystem::path& output, int group) {
    return output / "groups" / std::to_string(group);
}

std::filesystem::path flight_directory(const std::filesystem::path& output, int group) {
    return group_directory(output, group) / "flight";
}

std::string resume_command(int ranks, const std::filesystem::path& output) {
    return fmt::format("mpirun -np {} hpcai500 resume {}", ranks,
                       printable(shell_word(output.string())));
}

}  // namespace hpcai::results
