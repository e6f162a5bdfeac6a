// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/records/record_fields.hpp>

/// The progress and the checkpoints of a run that has no result yet.
namespace hpcai {

/// `terminated`: stopped by SIGTERM, which a launcher sends to all other ranks when a rank has
/// died. `unsaved`: stopped, but the checkpoint of its last step could not be written.
enum class ProgressState { training, evaluating, finished, failed, stopped, terminated, unsaved };

/// The words of all states in JSON; word_of(state) returns one.
constexpr std::array<Word<ProgressState>, 7> words_of(ProgressState /*state*/) {
    return {{{ProgressState::training, "training"},
             {ProgressState::evaluating, "evaluating"},
             {ProgressState::finished, "finished"},
             {ProgressState::failed, "failed"},
             {ProgressState::stopped, "stopped"},
             {ProgressState::terminated, "terminated"},
             {ProgressState::unsaved, "unsaved"}}};
}

inline constexpr const char* kProgressName = "progress.json";

/// `groups/<m>/progress.json`: the progress of a group. Its leader writes it every few seconds, or
/// another rank if the leader is lost. The file is removed when the run has its result.
struct ProgressRecord {
    std::string schema = "hpcai500-progress/1";
    ProgressState state = ProgressState::training;
    std::string reason;  // why the group failed or stopped
    std::string host;    // of the leader
    int epoch = 0;       // current epoch, from 1
    int epochs = 0;
    std::int64_t step = 0;  // steps done, over all epochs
    std::int64_t steps = 0;
    Quantity loss;  // mean over the steps whose results the latest read returned
    Quantity images_per_second;
    Quantity seconds_left;
    std::int64_t written_unix_seconds = 0;  // by the clock of the rank that wrote it
    HPCAI_RECORD(ProgressRecord, schema, state, reason, host, epoch, epochs, step, steps, loss,
                 images_per_second, seconds_left, written_unix_seconds);
};

/// The progress of one group, from its files.
struct GroupProgress {
    int group = 0;
    std::optional<ProgressRecord> progress;  // empty if there is no readable file
    std::string read_error;                  // why the file cannot be read
};

/// The progress of a run without a result, from its files.
struct RunProgress {
    std::string directory;
    std::vector<GroupProgress> groups;      // configured groups and groups that have begun
    std::int64_t now_unix_seconds = 0;      // by the clock of the reader
    std::int64_t started_unix_seconds = 0;  // when the last launch began; 0: unknown
    // Whether a program holds the lock of the directory; empty: unknown
    std::optional<bool> is_locked;
    bool was_on_this_node = false;  // all its ranks were, so that a lock that seems free is free
    std::string next_command;       // completes the run: resume or score; empty if unknown
    std::optional<std::int64_t> resume_step;  // smallest of the unfinished groups; empty: unknown
    std::optional<int> resume_group;  // a group with resume_step, if others have a later step
};

/// `rank-<group_rank>.done`: the marker that a rank writes after its checkpoint file is complete.
struct CheckpointMarker {
    std::string schema = "hpcai500-checkpoint/1";
    std::int64_t step = 0;  // steps done
    int group_rank = 0;
    int ranks = 1;              // size of the group
    std::string config_sha256;  // of the run's configuration
    std::int64_t program = 0;   // identifies the launch that wrote the file; equal on all ranks
    std::int64_t bytes = 0;     // of the rank's file
    std::string sha256;         // of the rank's file
    HPCAI_RECORD(CheckpointMarker, schema, step, group_rank, ranks, config_sha256, program, bytes,
                 sha256);
};

}  // namespace hpcai
