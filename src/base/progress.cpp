// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <ostream>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include <hpcai/base/progress.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>

namespace hpcai {

std::string render(const Progress& progress) {
    std::string line;
    if (progress.trial) line += fmt::format("trial {}  ", *progress.trial);
    if (progress.epoch > 0) line += fmt::format("epoch {}/{}  ", progress.epoch, progress.epochs);
    // Until the first loss is read, the device may be at an earlier step than the host.
    if (std::isnan(progress.loss)) {
        return line + fmt::format("step {}/{} under way", progress.step, progress.steps);
    }
    line += fmt::format("step {}/{}  loss {:.4f}  {:.{}f} images/s", progress.step, progress.steps,
                        progress.loss, progress.images_per_second,
                        progress.images_per_second < 99.95 ? 1 : 0);
    if (progress.seconds_left >= 0 && progress.step < progress.steps) {
        line += fmt::format("  {} left{}", format_seconds(progress.seconds_left),
                            progress.is_of_all_runs ? " in total" : "");
    }
    if (progress.slowest_group)
        line += fmt::format("  group {} is slowest", *progress.slowest_group);
    return line;
}

ProgressLine::ProgressLine(std::ostream& out, ProgressSettings settings)
    : out_(out),
      settings_(std::move(settings)),
      log_interval_seconds_(std::min(1.0, settings_.max_log_seconds)) {}

void ProgressLine::update(const Progress& progress, double now_seconds) {
    const double interval =
        settings_.live ? settings_.live_interval_seconds : log_interval_seconds_;
    const bool is_last = progress.step >= progress.steps;
    if (shown_before_ && !is_last && now_seconds - shown_seconds_ < interval) return;
    if (shown_before_) log_interval_seconds_ = std::min(2 * interval, settings_.max_log_seconds);
    shown_before_ = true;
    shown_seconds_ = now_seconds;
    if (settings_.print) return settings_.print(progress);
    show(settings_.prefix + render(progress));
}

void ProgressLine::show(const std::string& line) {
    if (!settings_.live) {
        std::string lines = line;
        const std::size_t gap = line.rfind("  ", kPageWidth);
        if (line.size() > kPageWidth && gap != line.npos) lines.replace(gap, 2, "\n    ");
        out_ << lines + '\n' << std::flush;  // one write, which no other output can divide
        return;
    }
    // Some terminals wrap when the last column is written.
    const std::size_t columns = std::max<std::size_t>(settings_.terminal_columns, 2) - 1;
    const std::string visible = line.substr(0, columns);
    out_ << fmt::format("\r{:<{}}", visible, std::max(visible.size(), live_columns_)) << std::flush;
    live_columns_ = visible.size();
}

void ProgressLine::finish() {
    if (live_columns_ > 0) out_ << '\n' << std::flush;
    live_columns_ = 0;
}

LateLine::LateLine(std::ostream& out, std::string line, double seconds) {
    const auto print = [&out, line = std::move(line), seconds](const std::stop_token& stop) {
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any wake;
        const std::chrono::duration<double> delay(seconds);
        wake.wait_for(lock, stop, delay, [&] { return stop.stop_requested(); });
        if (!stop.stop_requested()) out << line << std::flush;
    };
    try {
        thread_ = std::jthread(print);
    } catch (const std::system_error&) {
        return;  // the line is optional
    }
}

}  // namespace hpcai
