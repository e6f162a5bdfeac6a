// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <exception>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <hpcai/base/text.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/training/checkpoint.hpp>

namespace hpcai::results {
namespace {

/// Returns whether `value` can be the value of --bind-to, --map-by or --rank-by.
bool is_placement(const std::string& value) {
    constexpr const char* kLegal =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:=,._-";
    return !value.empty() && !value.starts_with('-') &&
           value.find_first_not_of(kLegal) == value.npos;
}

}  // namespace

std::filesystem::path group_directory(const std::filesystem::path& output, int group) {
    return output / "groups" / std::to_string(group);
}

std::filesystem::path behind_latest(const std::filesystem::path& directory) {
    const auto link = directory.has_filename() ? directory : directory.parent_path();
    std::error_code error;
    const auto target = std::filesystem::read_symlink(link, error);
    return error || link.filename() != kLatestName ? directory : link.parent_path() / target;
}

std::filesystem::path flight_directory(const std::filesystem::path& output, int group) {
    return group_directory(output, group) / "flight";
}

std::filesystem::path trial_weights(const std::filesystem::path& output, int group, int sequence) {
    return group_directory(output, group) / "trials" / fmt::format("{}.safetensors", sequence);
}

std::filesystem::path trial_classes(const std::filesystem::path& output, int group, int sequence) {
    return group_directory(output, group) / "trials" / fmt::format("{}.npy", sequence);
}

std::vector<std::string> placement_options(const std::vector<std::string>& words) {
    constexpr std::array<std::string_view, 3> kWithValue{"--bind-to", "--map-by", "--rank-by"};
    std::vector<std::string> options;
    for (auto word = words.begin(); word != words.end(); ++word) {
        const std::string name = word->starts_with("--") ? *word : "-" + *word;
        if (name == "--oversubscribe" || name == "--allow-run-as-root") {
            options.push_back(*word);
        } else if (std::ranges::count(kWithValue, name) > 0 && word + 1 != words.end() &&
                   is_placement(word[1])) {
            options.insert(options.end(), {word[0], word[1]});
            ++word;
        }
    }
    return options;
}

std::string resume_command(int ranks, const std::map<std::string, std::string>& environment,
                           const std::filesystem::path& output) {
    const auto fact = environment.find(kLauncherFact);
    std::istringstream text(fact == environment.end() ? "" : fact->second);
    std::vector<std::string> words{"mpirun"};
    for (std::string word; text >> word;) words.push_back(word);
    if (placement_options(words).size() + 1 != words.size()) words.resize(1);
    return fmt::format("{} -np {} hpcai500 resume {}", fmt::join(words, " "), ranks,
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
    // Links leave `from` in place: `resume` reads it if the run is killed before the group has
    // stored its record.
    using enum std::filesystem::copy_options;
    std::filesystem::copy(from, to, recursive | create_hard_links, error);
    if (error) {  // for example, because the file system has no hard links
        std::filesystem::remove_all(to, error);
        std::filesystem::rename(from, to, error);
    }
    require(!error, ExitCode::usage, "'{}' cannot be moved to '{}': {}", from.string(),
            folder.string(), error.message());
    require(
        storage::try_sync(to) && storage::try_sync(folder) && storage::try_sync(from.parent_path()),
        ExitCode::usage, "'{}' cannot be synced: {}", to.string(), std::strerror(errno));
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
