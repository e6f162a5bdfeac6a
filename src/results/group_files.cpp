// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstddef>
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
    std::error_code error;
    std::string newest;
    for (int number = 1;; ++number) {
        const auto attempt = output / "attempts" / std::to_string(number);
        if (!std::filesystem::exists(attempt, error)) break;
        const auto folder = group_directory(attempt, group);
        if (std::filesystem::exists(folder / "record.json", error)) newest = folder.string();
    }
    return newest.empty() ? text : fmt::format("{} since the one in '{}'", text, newest);
}

/// Returns whether a record contains a failure; empty if it is unreadable.
std::optional<bool> has_failed(const std::filesystem::path& record) {
    try {
        return !read_record(record).record.failure.empty();
    } catch (const Error&) {
        return std::nullopt;
    }
}

/// Returns the progress from the record of a group without progress.json. This file is removed when
/// the run has its result.
ProgressRecord progress_from_record(const std::filesystem::path& path) {
    const GroupRecord record = read_record(path).record;
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

GroupResult read_record(const std::filesystem::path& path) {
    return records::read_file<GroupResult>(path);
}

std::optional<GroupResult> read_finished_group(const std::filesystem::path& output,
                                               const config::Config& config, int group,
                                               std::string* reason) {
    const auto reject = [&](const std::string& text) -> std::optional<GroupResult> {
        if (reason != nullptr) *reason = text;
        return std::nullopt;
    };
    const auto directory = group_directory(output, group);
    std::error_code error;
    if (!std::filesystem::exists(directory / "record.json", error)) {
        return reject(describe_missing_record(output, group));
    }
    try {
        GroupResult result = read_record(directory / "record.json");
        if (!result.record.failure.empty()) return reject(result.record.failure);
        for (const char* name : {"weights.safetensors", "steps.csv", "ranks.csv"}) {
            if (name == std::string_view("weights.safetensors") && !config.run.keep_weights)
                continue;
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
        std::error_code error;
        if (!std::filesystem::exists(directory / "record.json", error)) continue;
        // A group with an unreadable record may have finished if it has no checkpoint any more.
        const std::optional<bool> failed = has_failed(directory / "record.json");
        if (failed.value_or(last_checkpoint(output, group, ranks) > 0)) continue;
        std::string reason;
        require(read_finished_group(output, config, group, &reason).has_value(), ExitCode::data,
                "{}: group {} {}{}; if the file cannot be restored, remove '{}' to train the group "
                "from the beginning",
                output.string(), group,
                failed ? "had finished, but " : "may have finished: ", reason, directory.string());
        ++finished;
    }
    return finished;
}

GroupResult read_failed_group(const std::filesystem::path& output, int group, int ranks) {
    GroupResult result;
    try {
        result = read_record(group_directory(output, group) / "record.json");
    } catch (const Error&) {
        result = {};  // the group's record is missing or unreadable
    }
    result.record.group = group;
    result.record.ranks = ranks;
    return result;
}

std::optional<FlightRecord> read_flight(const std::filesystem::path& file) {
    constexpr std::size_t kLimitBytes = std::size_t{1} << 20;
    try {
        return records::read_file<FlightRecord>(file, kLimitBytes);
    } catch (const Error&) {
        return std::nullopt;
    }
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
    std::error_code error;
    try {
        if (std::filesystem::exists(path, error)) {
            found.progress = records::read_file<ProgressRecord>(path, kLimitBytes);
        } else if (std::filesystem::exists(folder / "record.json", error)) {
            found.progress = progress_from_record(folder / "record.json");
        }
    } catch (const Error& damaged) {
        found.read_error = damaged.what();
    }
    return found;
}

void write_progress(const std::filesystem::path& output, int group, ProgressRecord progress) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    progress.written_unix_seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    const auto path = group_directory(output, group) / kProgressName;
    const std::string text = records::to_json(progress);
    std::error_code error;
    for (const bool is_last : {false, true}) {
        try {
            return storage::replace_file(path, text);
        } catch (const Error&) {  // removing the outdated file frees space on a full disk
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
