// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include <hpcai/records/record_fields.hpp>
#include <hpcai/storage/file.hpp>

/// The JSON text of records. `Record` is a struct that has a file of its own: RunRecord,
/// GroupResult, LaunchRecord, ProgressRecord, CheckpointMarker, FlightRecord, RepetitionsRecord or
/// RooflineRecord. to_json also takes PlanRecord and SweepRecord.
namespace hpcai::records {

/// Returns the text of a record with its keys in the order of HPCAI_RECORD, indented by two spaces.
/// A number that is missing or not finite is null, and "<key>_reason" has the reason.
template <typename Record>
std::string to_json(const Record& record);

/// Returns the text of to_json on one line, without line feed: a line of a JSON Lines file.
/// `Record` is ProposedTrial or FinishedTrial, which from_json also takes.
template <typename Record>
std::string to_json_line(const Record& record);

/// Returns the record in `text`; `name` is its name in error messages. Ignores unknown keys. Throws
/// Error(data) with the key, its value and the legal values if the schema differs, if a value is
/// missing, has another type or is out of range, or if values contradict each other.
template <typename Record>
Record from_json(std::string_view text, std::string_view name = "record");

/// Returns the record in a file of at most `limit_bytes`. Throws the errors of from_json and
/// storage::read_file_text.
template <typename Record>
Record read_file(const std::filesystem::path& path,
                 std::size_t limit_bytes = std::size_t{16} << 20) {
    return from_json<Record>(storage::read_file_text(path, limit_bytes), path.string());
}

/// Like read_file, but returns nothing if the file is missing or damaged.
template <typename Record>
std::optional<Record> try_read_file(const std::filesystem::path& path,
                                    std::size_t limit_bytes = std::size_t{16} << 20) {
    try {
        return read_file<Record>(path, limit_bytes);
    } catch (const Error&) {
        return std::nullopt;
    }
}

/// Returns null for a number that is missing or not finite.
nlohmann::ordered_json number_or_null(const Quantity& quantity);

/// Returns the text of `environment.json`.
std::string environment_to_json(const std::map<std::string, std::string>& environment);

}  // namespace hpcai::records
