// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>
#include <system_error>

#include <hpcai/base/text.hpp>
#include <hpcai/benchmark/report_files.hpp>
#include <hpcai/benchmark/run_status.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/report/json.hpp>
#include <hpcai/report/progress.hpp>
#include <hpcai/report/repetitions.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/repetitions.hpp>

#include "group_job.hpp"

namespace hpcai::benchmark {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
    std::error_code error;
    return fs::exists(path, error);
}

std::string digest_of(const fs::path& file) {
    return is_there(file) ? storage::sha256_hex_of_file(file) : "none";
}

RunStatus status_of_result(const fs::path& directory) {
    const RunRecord record = read_result(directory);
    const std::string manifest = digest_of(directory / storage::kManifestName);
    return {report::result_line(record, manifest) + "\n", record.verdict.exit_code, true};
}

std::string text_of(const fs::path& path, std::size_t limit_bytes) {
    return std::string(storage::text_of(storage::read_file_bytes(path, limit_bytes)));
}

/// By the record of a group whose leader could not write how far it is.
ProgressRecord progress_of_record(const fs::path& path) {
    constexpr std::size_t kLimitBytes = std::size_t{16} << 20;
    const GroupRecord record =
        report::group_from_json(text_of(path, kLimitBytes), path.string()).record;
    ProgressRecord progress;
    progress.state = record.failure.empty() ? ProgressState::finished : ProgressState::failed;
    progress.reason = record.failure;
    progress.host = record.hosts.empty() ? "" : record.hosts.front();
    progress.step = progress.steps = record.iterations;
    progress.images_per_second = record.images_per_second;
    progress.loss = record.final_training_loss;
    return progress;
}

GroupProgress read_group(const fs::path& directory, int group) {
    constexpr std::size_t kLimitBytes = std::size_t{64} << 10;
    GroupProgress found{group, std::nullopt, ""};
    const fs::path folder = group_directory(directory, group);
    const fs::path path = folder / report::kProgressName;
    try {
        if (is_there(path)) {
            found.progress = report::progress_from_json(text_of(path, kLimitBytes), path.string());
        } else if (is_there(folder / "record.json")) {
            found.progress = progress_of_record(folder / "record.json");
        }
    } catch (const Error& error) {
        found.trouble = error.what();
    }
    return found;
}

/// The configured ones and those that have a directory.
std::set<int> groups_of(const fs::path& directory) {
    const std::string path = (directory / "config.yaml").string();
    const config::Config config = config::parse(config::read_file(path), path, {});
    std::set<int> groups;
    for (int group = 0; group < config.bagging.groups.value_or(0); ++group) groups.insert(group);
    std::error_code error;
    for (fs::directory_iterator entry(directory / "groups", error), end; entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        const char* const name_end = name.data() + name.size();
        int group = -1;
        const auto [rest, wrong] = std::from_chars(name.data(), name_end, group);
        if (wrong == std::errc{} && rest == name_end && group >= 0) groups.insert(group);
    }
    return groups;
}

RunStatus status_of_progress(const fs::path& directory) {
    RunProgress run;
    run.directory = directory.string();
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    run.now_unix_seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    for (const int group : groups_of(directory)) run.groups.push_back(read_group(directory, group));
    const ExitCode code = report::exit_code_of(run);
    return {report::progress_table(run), code, code != ExitCode::watchdog};
}

RunStatus status_of_run(const fs::path& directory) {
    if (is_there(directory / "result.json")) return status_of_result(directory);
    require(is_there(directory / "config.yaml"), ExitCode::usage,
            "{}: expected a result directory with its config.yaml; a run that is refused makes "
            "none",
            directory.string());
    return status_of_progress(directory);
}

/// Of several runs the one under way, or what they have come to.
RunStatus status_of_series(const fs::path& directory) {
    RepetitionsRecord record;
    const bool is_begun = verification::has_repetitions(directory);
    if (is_begun) record = verification::read_repetitions(directory);
    const auto done = static_cast<int>(record.repetitions.size());
    const bool is_complete = is_begun && done >= record.requested;
    const fs::path next = directory / verification::repetition_name(done + 1);
    if (!is_complete && is_there(next)) {
        RunStatus status = status_of_run(next);
        if (status.exit_code == ExitCode::ok) status.exit_code = ExitCode::watchdog;
        return status;
    }
    const std::string digest = digest_of(directory / verification::kRepetitionsName);
    const ExitCode code =
        is_complete || record.exit_code != ExitCode::ok ? record.exit_code : ExitCode::watchdog;
    return {report::repetitions_line(record, digest) + "\n", code, true};
}

}  // namespace

RunStatus read_status(const fs::path& directory) {
    const bool is_series = verification::has_repetitions(directory) ||
                           is_there(directory / verification::repetition_name(1));
    return is_series ? status_of_series(directory) : status_of_run(directory);
}

}  // namespace hpcai::benchmark
