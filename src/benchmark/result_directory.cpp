// SPDX-License-Identifier: Apache-2.0
#include "result_directory.hpp"

#include <iostream>
#include <system_error>

#include <hpcai/base/text.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/report/json.hpp>
#include <hpcai/report/launch.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/folder.hpp>

#include "launch_file.hpp"
#include "progress_file.hpp"
#include "stored_group.hpp"

namespace hpcai::benchmark {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.yaml";

/// The directory, which must be new or empty, with what belongs in it from the start, or things as
/// they were. By config.yaml, which comes last, others take it for that of a run.
void make_output(const Start& start) {
    const fs::path& wanted = start.output;
    require_new_or_empty(wanted);
    std::error_code error;
    const bool exists = fs::exists(wanted, error);
    const bool has_folder = wanted.parent_path().empty() || fs::exists(wanted.parent_path(), error);
    try {
        fs::create_directories(wanted / "groups");
        fs::create_directories(wanted / "evaluation");
        write_launch_file(wanted, launch_record(start));
        storage::write_file_durably(wanted / kConfig, config::to_yaml(start.config));
    } catch (const std::exception& failure) {
        for (const char* name : {kConfig, report::kLaunchName, "evaluation", "groups"}) {
            fs::remove(wanted / name, error);
        }
        if (!exists) fs::remove(wanted, error);
        if (!has_folder) fs::remove(wanted.parent_path(), error);
        throw Error(ExitCode::usage, fmt::format("output directory {}: cannot be made: {}",
                                                 wanted.string(), failure.what()));
    }
}

/// attempts/<n>, which is made when something moves there.
class Attempt {
public:
    explicit Attempt(const fs::path& output) : output_(output) {
        for (int number = 1; folder_.empty() || fs::exists(folder_); ++number) {
            folder_ = output / "attempts" / std::to_string(number);
        }
    }
    void take(const fs::path& name) const {
        if (!fs::exists(output_ / name)) return;
        storage::make_folder_durably((folder_ / name).parent_path());
        fs::rename(output_ / name, folder_ / name);
    }

private:
    fs::path output_, folder_;
};

bool is_stale(const fs::path& record, StaleRecords records) {
    try {
        const GroupResult stored = read_record(record);
        return records == StaleRecords::unfinished && !stored.record.failure.empty();
    } catch (const Error&) {
        return true;
    }
}

}  // namespace

void require_new_or_empty(const fs::path& wanted) {
    std::error_code error;
    const bool exists = fs::exists(wanted, error);
    require(!exists || (fs::is_directory(wanted, error) && fs::is_empty(wanted, error)),
            ExitCode::usage, "output directory {}: exists and is not an empty directory",
            wanted.string());
}

std::shared_ptr<storage::FileLock> lock_directory(const fs::path& output) {
    using State = storage::FileLock::State;
    // A file that no program replaces.
    auto lock = std::make_shared<storage::FileLock>(output / kConfig);
    require(lock->state() != State::taken, ExitCode::usage,
            "{}: another program is at work in it, a run or `hpcai500 resume` or `score` of it; "
            "wait for its end, or end it",
            output.string());
    if (lock->state() == State::none) {
        std::cerr << fmt::format(
            "{}: its file system has no locks: see to it that no other program resumes it\n",
            printable(output.string()));
    }
    return lock;
}

void move_attempt_away(const fs::path& output, StaleRecords records) {
    const Attempt attempt(output);
    if (fs::exists(output / "result.json")) {
        for (const char* name : {"result.json", "report.html", "summary.txt", "manifest.sha256",
                                 "environment.json", "mllog", "evaluation"}) {
            attempt.take(name);
        }
    }
    fs::create_directories(output / "evaluation");
    std::error_code error;
    for (fs::directory_iterator group(output / "groups", error), end; !error && group != end;
         group.increment(error)) {
        const fs::path record = group->path() / "record.json";
        if (!fs::exists(record, error) || !is_stale(record, records)) continue;
        attempt.take(fs::path("groups") / group->path().filename() / "record.json");
    }
}

void make_result_directory(Start& start, comm::Communicator& everyone) {
    comm::run_together(everyone, [&] {
        if (everyone.rank() != 0) return;
        if (start.resumes) {
            remove_progress(start.output);  // of the program that ended
            move_attempt_away(start.output, StaleRecords::unfinished);
            return write_launch_file(start.output, launch_record(start));
        }
        make_output(start);
        start.lock = lock_directory(start.output);
    });
}

}  // namespace hpcai::benchmark
