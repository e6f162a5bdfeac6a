// SPDX-License-Identifier: Apache-2.0
#include <system_error>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/results/directory_lock.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/result_directory.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/workloads/inspector.hpp>

namespace hpcai::results {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.yaml";

/// Creates the directory, which must be new or empty, and its first files. Removes them on failure.
/// Writes config.yaml last, because it marks the directory of a run. The first of several runs also
/// stores the configuration of all runs in the parent.
void create_output(const context::RunContext& context, const LaunchRecord& launch) {
    const fs::path& output = context.output;
    require_new_or_empty(output);
    const bool exists = storage::path_exists(output);
    const bool has_parent =
        output.parent_path().empty() || storage::path_exists(output.parent_path());
    const fs::path series_config = context.folder() / kConfig;
    const bool begins_series =
        context.launch.repetitions > 1 && !storage::path_exists(series_config);
    try {
        fs::create_directories(output / "groups");
        fs::create_directories(output / "evaluation");
        if (begins_series) {
            config::Config config = context.config;
            config.run.repeat = context.launch.repetitions;
            storage::write_file_durably(series_config, config::to_yaml(config));
        }
        write_launch_file(output, launch);
        storage::write_file_durably(output / kConfig, context.config_text);
    } catch (const std::exception& failure) {
        std::error_code error;
        for (const char* name : {kConfig, kLaunchName, "evaluation", "groups"}) {
            fs::remove(output / name, error);
        }
        if (!exists) fs::remove(output, error);
        if (begins_series) fs::remove(series_config, error);
        if (!has_parent) fs::remove(output.parent_path(), error);
        throw Error(ExitCode::usage, fmt::format("output directory {}: cannot be created: {}",
                                                 output.string(), failure.what()));
    }
}

/// Moves a file or folder of `output`, if it exists, to `folder`, which is created if necessary.
void move_to(const fs::path& folder, const fs::path& output, const fs::path& name) {
    if (!fs::exists(output / name)) return;
    storage::make_folder_durably((folder / name).parent_path());
    std::error_code error;
    fs::rename(output / name, folder / name, error);
    require(!error, ExitCode::data, "'{}' cannot be moved to '{}': {}", (output / name).string(),
            (folder / name).string(), error.message());
}

/// Removes temporary files that a killed program left. Throws Error(data) for a link or pipe,
/// through which the result would be written elsewhere. Skips checkpoints, which readers check.
void clean(const fs::path& output) {
    const workloads::Inspector inspector(output);
    for (const auto& [name, is_regular] : inspector.entries()) {
        if (name.starts_with("checkpoints")) continue;
        const std::string file = fs::path(name).filename().string();
        require(is_regular, ExitCode::data,
                "'{}' is not a regular file; replace the link or pipe by its content",
                (output / name).string());
        std::error_code error;
        if (file.starts_with('.') && file.ends_with(".tmp")) fs::remove(output / name, error);
    }
}

/// Returns whether `kind` includes the existing record of a group.
bool is_stale(const context::RunContext& context, int group, StaleRecords kind) {
    const auto result =
        records::try_read_file<GroupResult>(group_directory(context.output, group) / "record.json");
    if (!result) return true;
    if (!result->record.failure.empty()) return kind == StaleRecords::unfinished;
    return !read_finished_group(context.output, context.config, group);
}

}  // namespace

void require_new_or_empty(const fs::path& output) {
    std::error_code error;
    const bool exists = fs::exists(output, error);
    require(!exists || (fs::is_directory(output, error) && fs::is_empty(output, error)),
            ExitCode::usage, "output directory {}: exists and is not an empty directory{}",
            output.string(), describe_broken_creation(output));
}

void link_latest(const context::RunContext& context, Logger& log) {
    fs::path directory = context.folder().lexically_normal();
    if (!directory.has_filename()) directory = directory.parent_path();
    const fs::path folder = directory.parent_path(), link = folder / kLatestName;
    if (folder.empty() || directory == link || context.is_resumed || context.launch.repetition > 1)
        return;
    std::error_code error;
    const fs::file_status existing = fs::symlink_status(link, error);
    if (fs::exists(existing) && !fs::is_symlink(existing))
        return log.warn("{} is not a symbolic link and stays as it is", link.string());
    const fs::path pending = folder / ("." + directory.filename().string() + ".latest");
    fs::create_directory_symlink(directory.filename(), pending, error);
    if (!error) fs::rename(pending, link, error);
    if (error)
        log.warn("{} cannot be made a link to the result: {}", link.string(), error.message());
    fs::remove(pending, error);
}

void archive_attempt(const context::RunContext& context, StaleRecords records,
                     const std::set<int>& undamaged_groups) {
    const fs::path& output = context.output;
    clean(output);
    fs::path attempt;
    for (int number = 1; attempt.empty() || fs::exists(attempt); ++number) {
        attempt = output / "attempts" / std::to_string(number);
    }
    if (fs::exists(output / "result.json")) {
        // The manifest is moved first, because it marks a complete result.
        for (const char* name : {storage::kManifestName, "result.json", "report.html",
                                 "summary.txt", "environment.json", "mllog", "evaluation"}) {
            move_to(attempt, output, name);
        }
    }
    fs::create_directories(output / "evaluation");
    for (int group = 0; group < context.controller.layout().groups; ++group) {
        const fs::path record = fs::path("groups") / std::to_string(group) / "record.json";
        if (undamaged_groups.contains(group) || !storage::path_exists(output / record)) continue;
        if (!is_stale(context, group, records)) continue;
        move_to(attempt, output, record);
        move_to(attempt, output, record.parent_path() / "flight");  // the record refers to it
    }
}

std::shared_ptr<storage::FileLock> make_result_directory(const context::RunContext& context,
                                                         const LaunchRecord& launch,
                                                         std::shared_ptr<storage::FileLock> lock,
                                                         comm::Communicator& everyone) {
    comm::collective_try(everyone, [&] {
        if (everyone.rank() != 0) return;
        if (context.is_resumed) {
            archive_attempt(context, StaleRecords::unfinished);
            remove_progress(context.output);  // of the previous launch
            return write_launch_file(context.output, launch);
        }
        create_output(context, launch);
        lock = lock_directory(context.output, storage::FileLock::Kind::exclusive);
    });
    return share_directory(context, std::move(lock), everyone);
}

}  // namespace hpcai::results
