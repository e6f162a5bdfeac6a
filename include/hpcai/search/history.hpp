// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include <hpcai/records/trial_record.hpp>
#include <hpcai/storage/file.hpp>

namespace hpcai::search {

struct Trial {
    ProposedTrial proposed;
    std::optional<FinishedTrial> finished;

    /// The accuracy after the last epoch, which is that of the stored weights; nothing if the trial
    /// has not completed.
    std::optional<double> accuracy() const;
};

/// The lines of one group's `trials.jsonl`: alternately a ProposedTrial and its FinishedTrial, each
/// with the SHA-256 of the line before.
class History {
public:
    /// `name` is the file's name in messages.
    History(int group, std::string name);

    /// Checks and adds a line. Throws Error(data) naming the file, the line and the key if it is
    /// not the expected record, does not continue the chain, or contradicts the lines before it;
    /// the history is then unchanged. Does not check facts of other groups; check_histories() does.
    void add_line(std::string_view line);

    int group() const noexcept { return group_; }
    const std::string& name() const noexcept { return name_; }
    std::int64_t lines() const noexcept { return lines_; }
    /// In order of their sequence.
    const std::vector<Trial>& trials() const noexcept { return trials_; }
    /// The SHA-256 of the last line, which the next line contains; 64 zeros if there is none. A
    /// stored copy of it reveals whether last lines were removed.
    const std::string& last_sha256() const noexcept { return last_sha256_; }

private:
    void add(ProposedTrial proposed, std::string_view at);
    void add(FinishedTrial finished, std::string_view at);

    int group_;
    std::string name_;
    std::int64_t lines_ = 0;
    std::vector<Trial> trials_;
    std::string last_sha256_;
};

struct Progress {
    std::int64_t trials = 0;  // completed
    std::int64_t epochs = 0;  // of the completed trials
    double end_seconds = 0;   // FinishedTrial::end_seconds of the last finished trial
};

/// Returns the progress before the last `dropped` completed trials. `dropped` is at most their
/// number.
Progress progress(const History& history, std::int64_t dropped);

/// Reads the file of a group, which may not exist yet and may grow meanwhile.
class HistoryReader {
public:
    HistoryReader(int group, fs::path path);

    /// Reads the whole lines that were appended since the last call, and ignores the text after the
    /// last line feed. Does not open a file whose size is as before. Throws the errors of
    /// History::add_line, and Error(data) if the file cannot be read, became shorter or is larger
    /// than a search writes.
    void update();

    const History& history() const noexcept { return history_; }
    /// Bytes of whole lines.
    std::int64_t bytes() const noexcept { return bytes_; }

private:
    fs::path path_;
    std::int64_t bytes_ = 0;
    History history_;
};

/// Appends lines to the file of the own group. Only one writer may exist.
class HistoryWriter {
public:
    /// Reads the lines of an earlier launch and removes an incomplete last line, which a crash may
    /// leave. Throws the errors of HistoryReader::update, and Error(usage) if the file cannot be
    /// written.
    HistoryWriter(int group, const fs::path& path);

    /// Sets `previous`, appends the line and syncs the file. Throws Error(usage) naming the file on
    /// failure, and the errors of History::add_line if the record contradicts the history.
    void append(ProposedTrial trial);
    void append(FinishedTrial trial);
    /// Removes the lines after the proposal of trial `sequence`, which is then unfinished. No other
    /// group may have read them. Throws Error(usage) naming the file on failure.
    void reopen(int sequence);

    const History& history() const noexcept { return history_; }

private:
    void read();
    void cut(std::int64_t bytes);
    void append_line(const std::string& line);

    fs::path path_;
    storage::Descriptor file_;
    History history_;
};

/// Checks the facts that concern several groups; histories[m] is that of group m. Throws
/// Error(data) naming file and line if a proposal has seen more lines than there are or lines that
/// depend on itself, if its parent had not completed in what it saw, if a trial in `missing` had
/// not finished in what it saw or occurs twice, or if its edits do not begin with the parent's.
void check_histories(std::span<const History> histories);

/// A trial in the lines that a proposal has seen.
struct SeenTrial {
    TrialId id;
    const Trial* trial = nullptr;
    std::optional<double> accuracy;  // of completed trials
    bool is_running = false;         // proposed and not finished in the lines seen
};
/// Returns the finished and running trials in the first seen[m] lines of each group m, ordered by
/// (sequence, group). This order does not depend on clocks, so a replay has the same order.
std::vector<SeenTrial> seen_trials(std::span<const History* const> histories,
                                   std::span<const std::int64_t> seen);

/// Returns pointers to the histories, as propose() takes them.
std::vector<const History*> pointers_to(std::span<const History> histories);

}  // namespace hpcai::search
