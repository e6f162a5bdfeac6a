// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <ctime>
#include <span>
#include <system_error>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/record_text.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::results {
namespace {

/// Returns why a group has no record, with the path of its latest record in attempts/.
std::string describe_missing_record(const std::filesystem::path& output, int group) {
    std::string text = "it has stored no record";
    std::string newest;
    for (int number = 1;; ++number) {
        const auto attempt = output / "attempts" / std::to_string(number);
        if (!storage::path_exists(attempt)) break;
        const auto folder = group_directory(attempt, group);
        if (storage::path_exists(folder / "record.json")) newest = folder.string();
    }
    return newest.empty() ? text : fmt::format("{} since the one in '{}'", text, newest);
}

/// Returns a group's progress from its record. There is no progress.json once a run has its result.
ProgressRecord progress_from_record(const std::filesystem::path& path) {
    const GroupRecord record = records::read_file<GroupResult>(path).record;
    ProgressRecord progress;
    progress.state = record.failure.empty() ? ProgressState::finished : ProgressState::failed;
    progress.reason = record.failure;
    progress.host = record.hosts.empty() ? "" : record.hosts.front();
    progress.step = progress.steps = record.iterations;
    progress.images_per_second = record.images_per_second;
    progress.loss = record.final_training_loss;
    return progress;
}

}  // namespace

std::optional<GroupResult> read_finished_group(const std::filesystem::path& output,
                                               const config::Config& config, int group,
                                               std::string* reason) {
    const auto reject = [&](const std::string& text) -> std::optional<GroupResult> {
        if (reason != nullptr) *reason = text;
        return std::nullopt;
    };
    const auto directory = group_directory(output, group);
    if (!storage::path_exists(directory / "record.json")) {
        return reject(describe_missing_record(output, group));
    }
    try {
        auto result = records::read_file<GroupResult>(directory / "record.json");
        if (!result.record.failure.empty()) return reject(result.record.failure);
        for (const char* name : {"weights.safetensors", "steps.csv", "ranks.csv"}) {
            if (name == std::string_view("weights.safetensors") && !config.run.keep_weights)
                continue;
            std::error_code error;
            if (!std::filesystem::is_regular_file(directory / name, error)) {
                return reject(fmt::format("it has no '{}'", (directory / name).string()));
            }
        }
        const auto predictions = directory / workloads::workload_of(config.workload).files.member;
        if (result.record.group != group) {
            return reject(fmt::format("its record.json is that of group {}", result.record.group));
        }
        if (storage::sha256_hex_of_file(predictions) != result.record.predictions_sha256) {
            return reject(fmt::format("'{}' does not have the digest in the group's record.json",
                                      predictions.string()));
        }
        return result;
    } catch (const Error& damaged) {
        return reject(damaged.what());
    }
}

int require_undamaged_groups(const std::filesystem::path& output, const config::Config& config,
                             int groups, int ranks) {
    int finished = 0;
    for (int group = 0; group < groups; ++group) {
        const auto directory = group_directory(output, group);
        if (!storage::path_exists(directory / "record.json")) continue;
        const auto stored = records::try_read_file<GroupResult>(directory / "record.json");
        // A group with an unreadable record may have finished if it has no checkpoint any more.
        const bool can_resume =
            stored ? !stored->record.failure.empty() : last_checkpoint(output, group, ranks) > 0;
        if (can_resume) continue;
        std::string reason;
        require(read_finished_group(output, config, group, &reason).has_value(), ExitCode::data,
                "{}: group {} {}{}; if the file cannot be restored, remove '{}' to train the group "
                "from the beginning",
                output.string(), group,
                stored ? "had finished, but " : "may have finished: ", reason, directory.string());
        ++finished;
    }
    return finished;
}

GroupResult read_failed_group(const std::filesystem::path& output, int group, int ranks) {
    const auto path = group_directory(output, group) / "record.json";
    GroupResult result = records::try_read_file<GroupResult>(path).value_or(GroupResult{});
    result.record.group = group;
    result.record.ranks = ranks;
    return result;
}

std::optional<FlightRecord> read_flight(const std::filesystem::path& file) {
    constexpr std::size_t kLimitBytes = std::size_t{1} << 20;
    return records::try_read_file<FlightRecord>(file, kLimitBytes);
}

std::string describe_hang(const std::filesystem::path& output, int group) {
    const auto record = read_flight(flight_directory(output, group) / "rank-0.json");
    if (!record) return "";
    return fmt::format("{}: {}", record->reason, report::describe_laggards(std::span(&*record, 1)));
}

GroupProgress read_progress(const std::filesystem::path& output, int group) {
    constexpr std::size_t kLimitBytes = std::size_t{64} << 10;
    GroupProgress found{group, std::nullopt, ""};
    const auto folder = group_directory(output, group);
    const auto path = folder / kProgressName;
    try {
        if (storage::path_exists(path)) {
            found.progress = records::read_file<ProgressRecord>(path, kLimitBytes);
        } else if (storage::path_exists(folder / "record.json")) {
            found.progress = progress_from_record(folder / "record.json");
        }
    } catch (const Error& damaged) {
        found.read_error = damaged.what();
    }
    return found;
}

void write_progress(const std::filesystem::path& output, int group, ProgressRecord progress) {
    progress.written_unix_seconds = std::time(nullptr);
    const auto path = group_directory(output, group) / kProgressName;
    const std::string text = records::to_json(progress);
    for (const bool is_last : {false, true}) {
        try {
            return storage::replace_file(path, text);
        } catch (const Error&) {  // removing the outdated file frees space on a full disk
            std::error_code error;
            if (!is_last) std::filesystem::remove(path, error);
        }
    }
}

void remove_progress(const std::filesystem::path& output) {
    std::error_code error;
    for (std::filesystem::directory_iterator group(output / "groups", error), end; group != end;
         group.increment(error)) {
        std::filesystem::remove(group->path() / kProgressName, error);
    }
}

}  // namespace hpcai::results
