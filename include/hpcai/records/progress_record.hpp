// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/records/record_fields.hpp>

/// How far a run is that has no result yet. Plain data; `report` writes, reads and prints it.
namespace hpcai {

/// `terminated`: stopped by SIGTERM where any exit ends the job, as launchers end the other ranks
/// of one that has died; `unsaved`: stopped, but the checkpoint of that step could not be written.
enum class ProgressState { training, evaluating, finished, failed, stopped, terminated, unsaved };

/// The words of all states; word_of(state) returns one.
constexpr std::array<Word<ProgressState>, 7> words_of(ProgressState /*state*/) {
    return {{{ProgressState::training, "training"},
             {ProgressState::evaluating, "evaluating"},
             {ProgressState::finished, "finished"},
             {ProgressState::failed, "failed"},
             {ProgressState::stopped, "stopped"},
             {ProgressState::terminated, "terminated"},
             {ProgressState::unsaved, "unsaved"}}};
}

/// The file of a ProgressRecord in the directory of its group.
inline constexpr const char* kProgressName = "progress.json";

/// How far one group is, as its leader, or who has missed it, says in `groups/<m>/progress.json`
/// from time to time. The file is removed when the run has its result.
struct ProgressRecord {
    std::string schema = "hpcai500-progress/1";
    ProgressState state = ProgressState::training;
    std::string reason;  // of a group that failed or stopped
    std::string host;    // of the leader
    int epoch = 0;       // the one under way, from 1
    int epochs = 0;
    std::int64_t step = 0;  // done, of all epochs
    std::int64_t steps = 0;
    Quantity loss;  // mean over the steps last read
    Quantity images_per_second;
    Quantity seconds_left;
    std::int64_t written_unix_seconds = 0;  // by the leader's clock
    HPCAI_RECORD(ProgressRecord, schema, state, reason, host, epoch, epochs, step, steps, loss,
                 images_per_second, seconds_left, written_unix_seconds);
};

/// What the files of one group say.
struct GroupProgress {
    int group = 0;
    std::optional<ProgressRecord> progress;  // nothing: no file, or none that can be read
    std::string trouble;                     // why it cannot be read
    bool operator==(const GroupProgress&) const = default;
};

/// What the files of a run say that has no result.
struct RunProgress {
    std::string directory;
    std::vector<GroupProgress> groups;    // those of the configuration and those that have begun
    std::int64_t now_unix_seconds = 0;    // by the reader's clock
    std::int64_t begun_unix_seconds = 0;  // when the last program began it; 0: not known
    // Whether a program holds the directory, by its lock; nothing: this reader cannot know
    std::optional<bool> is_at_work;
    std::string resume_command;  // as one would type it; empty: not known
    bool operator==(const RunProgress&) const = default;
};

}  // namespace hpcai
