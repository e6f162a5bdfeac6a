// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <thread>

namespace hpcai {

/// Progress of a training run.
struct Progress {
    std::optional<int> trial = {};  // of an architecture search
    std::int64_t step = 0;          // completed steps of all epochs
    std::int64_t steps = 0;         // planned steps of all epochs
    int epoch = 0;                  // the current epoch, from 1; 0: not shown
    int epochs = 0;
    double loss = 0;               // mean over the steps whose losses were read last; NaN: none
    double images_per_second = 0;  // sum over the ranks of the group
    double seconds_left = 0;       // until the run ends, with evaluation; negative: unknown
    bool is_of_all_runs = false;   // seconds_left includes the runs that follow (run.repeat)
    std::optional<int> slowest_group = {};
    int groups_training = 1;  // without those known to have ended; not shown by render()
};

/// Returns a line without line feed, e.g.
/// "epoch 3/90  step 12/450  loss 2.3456  512 images/s  3 min 12 s left  group 2 is slowest".
std::string render(const Progress& progress);

struct ProgressSettings {
    bool live = false;                   // true: a terminal, where one line is rewritten in place
    double live_interval_seconds = 0.2;  // between two updates of the line
    double max_log_seconds = 30;         // if not live: maximum between two lines
    std::size_t terminal_columns = 80;   // a live line is truncated to fit
    std::string prefix = {};             // text at the start of each line
    std::function<void(const Progress&)> print = {};  // if set, called instead of printing a line
};

/// Prints progress to `out`: in the first update, after the last step, and between them at most one
/// line per interval. If not live, the interval is 1 s until the second line, then doubles with
/// each line up to max_log_seconds. Times are those of a monotonic clock.
class ProgressLine {
public:
    /// `out` must outlive the object.
    ProgressLine(std::ostream& out, ProgressSettings settings);

    void update(const Progress& progress, double now_seconds);

    /// Ends a live line, if one is shown, so that other output starts on a new line.
    void finish();

private:
    void show(const std::string& line);

    std::ostream& out_;
    ProgressSettings settings_;
    bool shown_before_ = false;
    double shown_seconds_ = 0;
    double log_interval_seconds_;  // current interval, if not live
    std::size_t live_columns_ = 0;
};

/// Prints `line` to `out` if the object still exists after `seconds`. Prints nothing if no thread
/// can be created. `out` must outlive the object.
class LateLine {
public:
    LateLine(std::ostream& out, std::string line, double seconds);

private:
    std::jthread thread_;
};

}  // namespace hpcai
