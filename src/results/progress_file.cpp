// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <system_error>

#include <hpcai/base/error.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/progress.hpp>
#include <hpcai/results/progress_file.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/results/result_reader.hpp>
#include <hpcai/storage/file.hpp>

namespace hpcai::results {
namespace {

/// By the record of a group whose leader could not write how far it is.
ProgressRecord progress_of_record(const std::filesystem::path& path) {
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

/// None is better than one that says what is no more so.
void replace_where_there_is_no_room(const std::filesystem::path& path, const std::string& text) {
    std::error_code error;
    std::filesystem::remove(path, error);
    try {
        storage::replace_file(path, text);
    } catch (const Error&) {
        return;
    }
}

}  // namespace

GroupProgress read_progress(const std::filesystem::path& output, int group) {
    constexpr std::size_t kLimitBytes = std::size_t{64} << 10;
    GroupProgress found{group, std::nullopt, ""};
    const auto folder = group_directory(output, group);
    const auto path = folder / kProgressName;
    std::error_code error;
    try {
        if (std::filesystem::exists(path, error)) {
            const std::vector<std::byte> bytes = storage::read_file_bytes(path, kLimitBytes);
            found.progress =
                records::from_json<ProgressRecord>(storage::text_of(bytes), path.string());
        } else if (std::filesystem::exists(folder / "record.json", error)) {
            found.progress = progress_of_record(folder / "record.json");
        }
    } catch (const Error& damaged) {
        found.trouble = damaged.what();
    }
    return found;
}

void write_progress(const std::filesystem::path& output, int group, ProgressRecord progress) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    progress.written_unix_seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    const auto path = group_directory(output, group) / kProgressName;
    const std::string text = records::to_json(progress);
    try {
        storage::replace_file(path, text);
    } catch (const Error&) {
        replace_where_there_is_no_room(path, text);
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
