// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <span>
#include <system_error>
#include <vector>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/flight.hpp>
#include <hpcai/results/checkpoint_folder.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/results/result_reader.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/judge.hpp>

namespace hpcai::results {
namespace {

constexpr std::size_t kRecordLimitBytes = std::size_t{16} << 20;
constexpr std::size_t kFlightLimitBytes = std::size_t{1} << 20;

/// Why a group without a record has none, where one of an earlier attempt has moved away.
std::string why_no_record(const std::filesystem::path& output, int group) {
    std::string text = "it has stored no record";
    std::error_code error;
    std::string newest;
    for (int number = 1;; ++number) {
        const auto attempt = output / "attempts" / std::to_string(number);
        if (!std::filesystem::exists(attempt, error)) break;
        const auto folder = group_directory(attempt, group);
        if (std::filesystem::exists(folder / "record.json", error)) newest = folder.string();
    }
    return newest.empty() ? text : fmt::format("{} since that in '{}'", text, newest);
}

/// By its own word; nothing where it cannot be read.
std::optional<bool> has_failed(const std::filesystem::path& record) {
    try {
        return !read_record(record).record.failure.empty();
    } catch (const Error&) {
        return std::nullopt;
    }
}

}  // namespace

GroupResult read_record(const std::filesystem::path& path) {
    const std::vector<std::byte> bytes = storage::read_file_bytes(path, kRecordLimitBytes);
    return records::from_json<GroupResult>(storage::text_of(bytes), path.string());
}

std::optional<GroupResult> read_finished_group(const std::filesystem::path& output,
                                               const config::WorkloadConfig& workload, int group,
                                               std::string* why) {
    const auto refuse = [&](const std::string& reason) -> std::optional<GroupResult> {
        if (why != nullptr) *why = reason;
        return std::nullopt;
    };
    const auto directory = group_directory(output, group);
    std::error_code error;
    if (!std::filesystem::exists(directory / "record.json", error)) {
        return refuse(why_no_record(output, group));
    }
    try {
        GroupResult result = read_record(directory / "record.json");
        if (!result.record.failure.empty()) return refuse(result.record.failure);
        for (const char* name : {"weights.safetensors", "steps.csv", "ranks.csv"}) {
            if (!std::filesystem::is_regular_file(directory / name, error)) {
                return refuse(fmt::format("it has no '{}'", (directory / name).string()));
            }
        }
        const auto predictions = directory / verification::prediction_files(workload).member;
        if (result.record.group != group ||
            storage::sha256_hex_of_file(predictions) != result.record.predictions_sha256) {
            return refuse(
                fmt::format("'{}' is not what the group's record.json says", predictions.string()));
        }
        return result;
    } catch (const Error& damaged) {
        return refuse(damaged.what());
    }
}

void require_undamaged_groups(const std::filesystem::path& output,
                              const config::WorkloadConfig& workload, int groups, int ranks) {
    for (int group = 0; group < groups; ++group) {
        const auto directory = group_directory(output, group);
        std::error_code error;
        if (!std::filesystem::exists(directory / "record.json", error)) continue;
        // One that has finished has no checkpoints left.
        const std::optional<bool> failed = has_failed(directory / "record.json");
        if (failed.value_or(last_checkpoint(output, group, ranks) > 0)) continue;
        std::string why;
        require(read_finished_group(output, workload, group, &why).has_value(), ExitCode::data,
                "{}: group {} {}{}; where that cannot be had back, remove '{}' to train the group "
                "from the beginning",
                output.string(), group, failed ? "had finished, and " : "may have finished: ", why,
                directory.string());
    }
}

GroupResult read_failed_group(const std::filesystem::path& output, int group, int ranks) {
    GroupResult result;
    try {
        result = read_record(group_directory(output, group) / "record.json");
    } catch (const Error&) {
        result = {};  // it died before it could store anything
    }
    result.record.group = group;
    result.record.ranks = ranks;
    return result;
}

std::optional<FlightRecord> read_flight(const std::filesystem::path& file) {
    try {
        const auto bytes = storage::read_file_bytes(file, kFlightLimitBytes);
        return records::from_json<FlightRecord>(storage::text_of(bytes), file.string());
    } catch (const Error&) {
        return std::nullopt;
    }
}

std::string hang_of(const std::filesystem::path& output, int group) {
    const auto record = read_flight(flight_directory(output, group) / "rank-0.json");
    if (!record) return "";
    return fmt::format("{}: {}", record->reason, report::describe_laggards(std::span(&*record, 1)));
}

}  // namespace hpcai::results
