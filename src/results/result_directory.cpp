// SPDX-License-Identifier: Apache-2.0
#include <system_error>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/results/directory_lock.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/result_directory.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>

namespace hpcai::results {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.yaml";

/// Makes the directory, which must be new or empty, with its first files. Leaves no trace on
/// failure. Writes config.yaml last, because it marks the directory of a run.
void make_output(const context::RunContext& context, const LaunchRecord& launch) {
    const fs::path& wanted = context.output;
    require_new_or_empty(wanted);
    std::error_code error;
    const bool exists = fs::exists(wanted, error);
    const bool has_folder = wanted.parent_path().empty() || fs::exists(wanted.parent_path(), error);
    try {
        fs::create_directories(wanted / "groups");
        fs::create_directories(wanted / "evaluation");
        write_launch_file(wanted, launch);
        storage::write_file_durably(wanted / kConfig, context.config_text);
    } catch (const std::exception& failure) {
        for (const char* name : {kConfig, kLaunchName, "evaluation", "groups"}) {
            fs::remove(wanted / name, error);
        }
        if (!exists) fs::remove(wanted, error);
        if (!has_folder) fs::remove(wanted.parent_path(), error);
        throw Error(ExitCode::usage, fmt::format("output directory {}: cannot be made: {}",
                                                 wanted.string(), failure.what()));
    }
}

/// attempts/<n>, a folder that is made when the first file moves there.
class Attempt {
public:
    explicit Attempt(const fs::path& output) : output_(output) {
        for (int number = 1; folder_.empty() || fs::exists(folder_); ++number) {
            folder_ = output / "attempts" / std::to_string(number);
        }
    }
    void move_here(const fs::path& name) const {
        if (!fs::exists(output_ / name)) return;
        storage::make_folder_durably((folder_ / name).parent_path());
        std::error_code error;
        fs::rename(output_ / name, folder_ / name, error);
        require(!error, ExitCode::data, "'{}' cannot be moved to '{}': {}",
                (output_ / name).string(), (folder_ / name).string(), error.message());
    }

private:
    fs::path output_, folder_;
};

/// Returns whether the existing record of a group is among the `records` to replace.
bool is_stale(const context::RunContext& context, int group, StaleRecords records) {
    try {
        const fs::path path = group_directory(context.output, group) / "record.json";
        if (!read_record(path).record.failure.empty()) return records == StaleRecords::unfinished;
    } catch (const Error&) {
        return true;
    }
    return !read_finished_group(context.output, context.config.workload, group);
}

}  // namespace

void require_new_or_empty(const fs::path& wanted) {
    std::error_code error;
    const bool exists = fs::exists(wanted, error);
    require(!exists || (fs::is_directory(wanted, error) && fs::is_empty(wanted, error)),
            ExitCode::usage, "output directory {}: exists and is not an empty directory",
            wanted.string());
}

void archive_attempt(const context::RunContext& context, StaleRecords records,
                     const std::set<int>& undamaged_groups) {
    const fs::path& output = context.output;
    const Attempt attempt(output);
    if (fs::exists(output / "result.json")) {
        // The manifest goes first, because it marks a result.
        for (const char* name : {storage::kManifestName, "result.json", "report.html",
                                 "summary.txt", "environment.json", "mllog", "evaluation"}) {
            attempt.move_here(name);
        }
    }
    fs::create_directories(output / "evaluation");
    std::error_code error;
    for (int group = 0; group < context.controller.layout().groups; ++group) {
        const fs::path record = fs::path("groups") / std::to_string(group) / "record.json";
        if (undamaged_groups.contains(group) || !fs::exists(output / record, error)) continue;
        if (!is_stale(context, group, records)) continue;
        attempt.move_here(record);
        attempt.move_here(record.parent_path() / "flight");  // its failure refers to them
    }
}

std::shared_ptr<storage::FileLock> make_result_directory(const context::RunContext& context,
                                                         const LaunchRecord& launch,
                                                         std::shared_ptr<storage::FileLock> lock,
                                                         comm::Communicator& everyone) {
    comm::collective_try(everyone, [&] {
        if (everyone.rank() != 0) return;
        if (context.resumes) {
            remove_progress(context.output);  // of the previous launch
            archive_attempt(context, StaleRecords::unfinished);
            return write_launch_file(context.output, launch);
        }
        make_output(context, launch);
        lock = lock_directory(context.output, storage::FileLock::Kind::exclusive);
    });
    return share_directory(context, std::move(lock), everyone);
}

}  // namespace hpcai::results
