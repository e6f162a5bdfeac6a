// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <set>
#include <system_error>

#include <sys/utsname.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/progress.hpp>
#include <hpcai/report/repetitions.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/results/directory_lock.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/report_files.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/results/run_status.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/repetitions.hpp>

namespace hpcai::results {
namespace {

namespace fs = std::filesystem;

using storage::path_exists;

std::string digest_of(const fs::path& file) {
    return path_exists(file) ? storage::sha256_hex_of_file(file) : "none";
}

RunStatus status_of_result(const fs::path& directory) {
    const RunRecord record = read_result(directory);
    const std::string manifest = digest_of(directory / storage::kManifestName);
    std::string text = report::result_line(record, manifest) + "\n";
    if (!path_exists(directory / report::kSummaryName)) {
        text =
            "report: hpcai500 report " + printable(shell_quote(directory.string())) + "\n" + text;
    }
    return {text, record.verdict.exit_code, true};
}

/// Returns the record of the latest launch; empty if unreadable, because `resume` reports the
/// error.
std::optional<LaunchRecord> try_read_launch(const fs::path& directory) {
    try {
        return read_launch_file(directory);
    } catch (const Error&) {
        return std::nullopt;
    }
}

/// Returns the groups of the configuration or the launch, and those that have a directory.
std::set<int> groups_of(const fs::path& directory, const std::optional<LaunchRecord>& launch) {
    const int launched = launch ? launch->topology.groups : 0;
    const int configured = read_config(directory).bagging.groups.value_or(launched);
    std::set<int> groups;
    for (int group = 0; group < configured; ++group) groups.insert(group);
    std::error_code error;
    for (fs::directory_iterator entry(directory / "groups", error), end; entry != end;
         entry.increment(error)) {
        const auto group = parse_number<int>(entry->path().filename().string());
        if (group && *group >= 0) groups.insert(*group);
    }
    return groups;
}

/// Returns when the latest launch began; 0 if there is no launch.json.
std::int64_t started_unix_seconds(const fs::path& directory) {
    std::error_code error;
    const auto written = fs::last_write_time(directory / kLaunchName, error);
    if (error) return 0;
    const auto since_1970 = std::chrono::file_clock::to_sys(written).time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(since_1970).count();
}

/// Returns the command that resumes the run in `folder`, to which users may have moved it; empty if
/// unknown.
std::string find_resume_command(const std::optional<LaunchRecord>& launch, const fs::path& folder) {
    return launch ? resume_command(launch->topology.ranks, launch->environment, folder) : "";
}

/// Returns whether all ranks of the latest launch were on this node.
bool was_on_this_node(const LaunchRecord& launch) {
    utsname system{};
    uname(&system);
    const auto is_here = [&](const PlaceRecord& place) { return place.host == system.nodename; };
    return launch.topology.nodes == 1 && std::ranges::all_of(launch.topology.map, is_here);
}

/// Sets resume_step and resume_group of the run, whose groups have `ranks` ranks.
void set_resume_step(RunProgress& run, int ranks) {
    std::map<std::int64_t, int> first;  // [step]: the first group that would resume there
    try {
        for (const auto& [group, progress, error] : run.groups) {
            // A group that died after it stored its record has no checkpoint and is not trained.
            const fs::path record = group_directory(run.directory, group) / "record.json";
            const auto stored = records::try_read_file<GroupResult>(record);
            if (stored && stored->record.failure.empty()) continue;
            first.emplace(last_checkpoint(run.directory, group, ranks), group);
        }
    } catch (const Error&) {  // `resume` reports the error
        return;
    }
    if (first.empty()) return;
    run.resume_step = first.begin()->first;
    if (first.size() > 1) run.resume_group = first.begin()->second;
}

/// Returns the progress without the values that depend on it: the next command and resume_step.
RunProgress read_run(const fs::path& directory, const std::optional<LaunchRecord>& launch) {
    RunProgress run;
    run.directory = directory.string();
    run.now_unix_seconds = std::time(nullptr);
    for (const int group : groups_of(directory, launch))
        run.groups.push_back(read_progress(directory, group));
    run.started_unix_seconds = started_unix_seconds(directory);
    run.is_locked = is_locked(directory);
    run.was_on_this_node = launch && was_on_this_node(*launch);
    return run;
}

RunStatus status_of_progress(const fs::path& directory, const fs::path& folder) {
    const auto launch = try_read_launch(directory);
    RunProgress run = read_run(directory, launch);
    const bool is_trained = report::have_all_finished(run);
    run.next_command = is_trained ? "hpcai500 score " + printable(shell_quote(directory.string()))
                                  : find_resume_command(launch, folder);
    if (launch && report::shows_resume_step(run)) set_resume_step(run, launch->topology.degree);
    return {report::progress_table(run), report::exit_code_of(run), report::is_over(run),
            report::is_ending(run)};
}

/// Returns the status of a run. `folder` is the argument of `resume`: the run's directory, or its
/// parent if the run is one of run.repeat.
RunStatus status_of_run(const fs::path& directory, const fs::path& folder) {
    // The manifest is written last. `resume` holds an exclusive lock until it has moved the result
    // away, then a shared lock.
    const bool has_result = path_exists(directory / storage::kManifestName);
    if (has_result && !is_being_resumed(directory)) return status_of_result(directory);
    require_run(directory);
    return status_of_progress(directory, folder);
}

bool is_recent(const fs::path& file) {
    std::error_code error;
    const auto written = fs::last_write_time(file, error);
    const auto silence = std::chrono::seconds(report::kSilenceSeconds);
    return !error && fs::file_time_type::clock::now() - written < silence;
}

/// Returns ", 5 min 00 s left in total" for the run in `directory` and the `later_runs` after it;
/// "" if the run does not train.
std::string describe_time_left(const fs::path& directory, int later_runs) {
    const RunProgress run = read_run(directory, try_read_launch(directory));
    if (report::has_died(run)) return "";
    double left = 0;
    for (const auto& [group, progress, error] : run.groups) {
        if (!progress || progress->step >= progress->steps) continue;
        const auto steps = static_cast<double>(progress->steps);
        const double ratio =
            1 + later_runs * steps / static_cast<double>(progress->steps - progress->step);
        left = std::max(left, progress->seconds_left.value.value_or(0) * ratio);
    }
    return left > 0 ? ", " + format_seconds(left) + " left in total" : "";
}

/// Returns the status of the unfinished run of run.repeat, or of all runs if there is none. Between
/// two runs, the status is not final.
RunStatus status_of_repetitions(const fs::path& directory) {
    RepetitionsRecord record;
    record.requested = read_config(directory).run.repeat;
    if (verification::has_repetitions(directory))
        record = verification::read_repetitions(directory);
    const auto done = static_cast<int>(record.repetitions.size());
    const bool is_complete = done >= record.requested;
    const std::string command = find_resume_command(
        try_read_launch(directory / verification::repetition_name(1)), directory);
    const bool is_idle = !is_complete && !command.empty() && is_locked(directory) != true;
    const std::string resume = is_idle ? wrap_command("resume: " + command, 4) + "\n" : "";
    const fs::path next = directory / verification::repetition_name(done + 1);
    if (!is_complete && path_exists(next)) {
        RunStatus status = status_of_run(next, directory);
        const bool has_result = path_exists(next / storage::kManifestName);
        const std::string left = has_result || status.is_final
                                     ? ""
                                     : describe_time_left(next, record.requested - done - 1);
        status.text = fmt::format("repetition {} of {}{}\n{}{}", done + 1, record.requested, left,
                                  has_result ? resume : "", status.text);
        if (status.exit_code == ExitCode::ok) status.exit_code = ExitCode::watchdog;
        if (is_recent(next / storage::kManifestName)) status.is_final = false;
        return status;
    }
    const std::string digest = digest_of(directory / verification::kRepetitionsName);
    const ExitCode code =
        is_complete || record.exit_code != ExitCode::ok ? record.exit_code : ExitCode::watchdog;
    const bool is_final = is_complete || !is_recent(directory / verification::kRepetitionsName);
    return {resume + report::repetitions_line(record, digest) + "\n", code, is_final};
}

}  // namespace

RunStatus read_status(const fs::path& given) {
    const fs::path directory = behind_latest(given);
    const bool has_several_runs = verification::has_repetitions(directory) ||
                                  path_exists(directory / verification::repetition_name(1));
    if (has_several_runs) return status_of_repetitions(directory);
    return status_of_run(directory, directory);
}

}  // namespace hpcai::results
