// SPDX-License-Identifier: Apache-2.0
#include "trial_proposals.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>
#include <utility>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/config/search_limits.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/graph/parameter_store.hpp>
#include <hpcai/group/peer_groups.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/training/initialize.hpp>
#include <hpcai/training/weights_file.hpp>

namespace hpcai::group {
namespace {

constexpr std::chrono::milliseconds kPollInterval{20};
constexpr double kSecondsBetweenProgressReads = 1;
constexpr int kMaxAttempts = 2;  // a trial fails after it has ended this many launches
constexpr std::size_t kMaxAttemptsBytes = 64;

std::filesystem::path history_path(const std::filesystem::path& output, int group) {
    return results::group_directory(output, group) / kTrialsName;
}

/// Returns the finished trials of `group` in an earlier search.
std::vector<ProposedTrial> read_recorded(const std::filesystem::path& directory, int group) {
    search::HistoryReader reader(group, history_path(directory, group));
    reader.update();
    std::vector<ProposedTrial> trials;
    for (const search::Trial& trial : reader.history().trials())
        if (trial.finished) trials.push_back(trial.proposed);
    return trials;
}

}  // namespace

TrialProposals::TrialProposals(const context::RunContext& context, Logger& log,
                               std::int64_t memory_bytes, std::string_view precision,
                               std::function<bool()> may_wait)
    : context_(context),
      log_(log),
      may_wait_(std::move(may_wait)),
      basis_(verification::search_basis(context.config)),
      limits_(verification::proposal_limits(context.config, basis_.root,
                                            context.controller.layout().degree, precision)),
      memory_bytes_(limits_.configured_memory > 0 ? limits_.configured_memory : memory_bytes),
      writer_(context.place.group, history_path(context.output, context.place.group)) {
    const config::SearchConfig& search = context.config.search;
    for (int group = 0; group < context.controller.layout().groups; ++group) {
        others_.push_back({search::HistoryReader(group, history_path(context.output, group))});
    }
    if (search.history == config::SearchHistory::recorded) {
        recorded_ = read_recorded(search.recorded, context.place.group);
    }
    require(own().trials().empty() || own().trials().back().proposed.seen.size() == others_.size(),
            ExitCode::data, "'{}' is of a search with another number of groups", own().name());
    const bool is_replay = search.history == config::SearchHistory::recorded;
    if (const std::int64_t needed = limits_.memory_bytes(basis_.root);
        needed > memory_bytes_ && !is_replay)
        log.warn(
            "no trial has new edits: the root may need {} of memory, more than {}, which follows "
            "from search.max_memory_gb",
            format_bytes(static_cast<std::uint64_t>(needed)),
            format_bytes(static_cast<std::uint64_t>(memory_bytes_)));
}

bool TrialProposals::is_over() const {
    const config::SearchConfig& search = context_.config.search;
    const std::int64_t finished = own().lines() / 2;  // lines: the proposal and the result
    std::int64_t completed = 0, epochs = config::trial_epochs(search, finished);
    for (const search::Trial& trial : own().trials()) {
        if (!trial.accuracy()) continue;
        ++completed;
        epochs += std::ssize(trial.finished->accuracy);
    }
    // Uses the times in the history. By the clock, a search could end with an unfinished proposal.
    const bool is_late = search.duration_seconds > 0 && completed > 0 &&
                         end_seconds().value_or(0) >= search.duration_seconds;
    const bool is_replayed = search.history == config::SearchHistory::recorded;
    return is_late || (search.trials > 0 && completed >= search.trials) ||
           (is_replayed && finished >= std::ssize(recorded_)) ||
           epochs > config::kMaxSearchEpochs || !verification::end_reason(own()).empty();
}

std::int64_t TrialProposals::Other::usable_lines() const {
    const search::History& history = reader.history();
    return checked == history.trials().size() ? history.lines()
                                              : 2 * static_cast<std::int64_t>(checked);
}

/// Reads the lines of another group. Damaged lines of another group do not end this one.
void TrialProposals::update(int group) {
    Other& other = others_[group];
    if (other.is_damaged) return;
    const auto attempt = [&](const auto& read) {
        try {
            read();
        } catch (const Error& error) {
            if (!std::exchange(other.is_reported, true))
                log_.warn("the trials of group {} cannot be read: {}", group, error.what());
        }
    };
    attempt([&] { other.reader.update(); });
    attempt([&] { check_new_trials(other); });
}

/// Throws Error if a trial that was read has impossible edits or hyper-parameters.
void TrialProposals::check_new_trials(Other& other) const {
    const search::History& history = other.reader.history();
    for (; other.checked < history.trials().size(); ++other.checked) {
        const ProposedTrial& trial = history.trials()[other.checked].proposed;
        other.is_damaged = true;
        search::check_hyper_parameters(basis_.settings, trial, history.name());
        const std::string_view limit = verification::refused_by(limits_, basis_, trial);
        require(limit.empty(), ExitCode::data, "{}: trial {} exceeds {}", history.name(),
                trial.sequence, limit);
        other.is_damaged = false;
    }
}

/// Waits until another group has stored `lines` lines, on which a proposal depends. Its trials may
/// be long, so run.group_timeout_seconds applies only while that group is not active.
void TrialProposals::await(int group, std::int64_t lines) {
    Stopwatch since_activity, since_progress_read;
    const Other& other = others_[group];
    if (lines > other.usable_lines()) update(group);
    while (other.usable_lines() < lines) {
        if (!may_wait_()) throw Interrupted();
        if (since_progress_read.seconds() >= kSecondsBetweenProgressReads) {
            since_progress_read.restart();
            if (is_group_active(context_, group)) since_activity.restart();
        }
        const double timeout = context_.config.run.group_timeout_seconds;
        require(!other.is_damaged && since_activity.seconds() < timeout, ExitCode::data,
                "group {} has not stored {} legal lines, on which a proposal depends: {}", group,
                lines,
                other.is_damaged
                    ? "its next trial is impossible"
                    : fmt::format("inactive for {} s (run.group_timeout_seconds)", timeout));
        std::this_thread::sleep_for(kPollInterval);
        update(group);
    }
}

search::Request TrialProposals::request() {
    const config::SearchHistory kind = context_.config.search.history;
    const std::vector<search::Trial>& trials = own().trials();
    const std::size_t sequence = trials.size();
    search::Request request{.group = own().group(),
                            .sequence = static_cast<int>(sequence),
                            .memory_bytes = memory_bytes_};
    const ProposedTrial* recorded = nullptr;
    if (kind == config::SearchHistory::recorded) {
        require(sequence < recorded_.size() && recorded_[sequence].seen.size() == others_.size(),
                ExitCode::data, "search.recorded: '{}' has no trial {} of group {}",
                context_.config.search.recorded, sequence, own().group());
        recorded = &recorded_[sequence];
        request.missing = recorded->missing;
        request.memory_bytes = recorded->memory_bytes;
    }
    for (int group = 0; group < std::ssize(others_); ++group) {
        std::int64_t lines = 0;
        if (group == own().group()) {
            lines = own().lines();
        } else if (recorded != nullptr) {
            lines = recorded->seen[group];
        } else if (kind == config::SearchHistory::asynchronous) {
            update(group);
            // A line that a trial has seen stays seen, even if it cannot be read just now.
            const std::int64_t before = trials.empty() ? 0 : trials.back().proposed.seen[group];
            lines = std::max(before, others_[group].usable_lines());
        }
        if (group != own().group()) await(group, lines);
        request.seen.push_back(lines);
    }
    return request;
}

std::vector<const search::History*> TrialProposals::histories() const {
    std::vector<const search::History*> all;
    for (const Other& other : others_) {
        const search::History& history = other.reader.history();
        all.push_back(history.group() == own().group() ? &own() : &history);
    }
    return all;
}

const std::vector<EditRecord>& TrialProposals::edits_of(const TrialId& trial) const {
    static const std::vector<EditRecord> kNone;
    if (trial.is_root()) return kNone;
    const auto& trials = histories().at(trial.group)->trials();
    return trials.at(trial.sequence).proposed.edits;
}

/// Returns the weights of a trial, or the initial weights of the root; nothing if they are gone.
std::optional<morphs::Weights> TrialProposals::weights_of(const TrialId& trial) {
    const auto graph = morphs::apply_all(basis_.root, search::morphs_of(edits_of(trial)));
    // The memory of the group's device may be full: it still has the model of the previous trial.
    const std::unique_ptr<device::Device> host = device::make_cpu_device({});
    graph::ParameterStore store(graph, *host, 0);
    if (trial.is_root()) {
        training::initialize(graph, context_.config.run.seed,
                             static_cast<std::uint32_t>(context_.place.group), store);
        return morphs::read_weights(graph, store);
    }
    const auto path = results::trial_weights(context_.output, trial.group, trial.sequence);
    try {
        training::read_weights(path, graph, store);
    } catch (const Error& error) {
        if (storage::path_exists(path))
            log_.warn("no trial inherits the weights of trial {} of group {}: {}", trial.sequence,
                      trial.group, error.what());
        return std::nullopt;
    }
    return morphs::read_weights(graph, store);
}

/// Returns the proposed trial with its initial weights; nothing if those of its parent are gone.
std::optional<PreparedTrial> TrialProposals::inherit(ProposedTrial proposed) {
    std::optional<morphs::Weights> parent = weights_of(proposed.parent);
    if (!parent) return std::nullopt;
    const auto script = search::morphs_of(proposed.edits);
    const auto seed = morphs::child_seed(context_.config.run.seed,
                                         static_cast<std::uint32_t>(context_.place.group),
                                         static_cast<std::uint32_t>(proposed.sequence));
    auto weights = morphs::inherit(basis_.root, script, edits_of(proposed.parent).size(),
                                   std::move(*parent), seed);
    return PreparedTrial{std::move(proposed), std::move(weights)};
}

std::optional<double> TrialProposals::end_seconds() const {
    const std::vector<search::Trial>& trials = own().trials();
    if (trials.empty() || !trials.back().finished) return std::nullopt;
    return trials.back().finished->end_seconds;
}

void TrialProposals::reopen_last_completed() {
    const std::vector<search::Trial>& trials = own().trials();
    std::size_t last = trials.size();
    while (last > 0 && !trials[last - 1].accuracy()) --last;
    ensure(last > 0, "no trial has completed");
    writer_.reopen(static_cast<int>(last) - 1);
}

void TrialProposals::fail(std::string reason, double end_seconds) {
    FinishedTrial trial;
    for (const search::Trial& earlier : own().trials()) {
        trial.sequence = earlier.proposed.sequence;
        if (earlier.finished) trial.begin_seconds = earlier.finished->end_seconds;
    }
    trial.end_seconds = std::max(trial.begin_seconds, end_seconds);
    trial.state = TrialState::failed;
    trial.reason = std::move(reason);
    writer_.append(std::move(trial));
}

std::filesystem::path TrialProposals::attempts_file() const {
    return results::checkpoint_directory(context_.output, context_.place.group) / "attempts.txt";
}

/// Returns how many launches in a row have ended in this trial.
int TrialProposals::attempts(int sequence) const {
    if (!storage::path_exists(attempts_file())) return 0;
    std::istringstream text(storage::read_file_text(attempts_file(), kMaxAttemptsBytes));
    int stored_sequence = -1, count = 0;
    text >> stored_sequence >> count;
    return stored_sequence == sequence ? count : 0;
}

/// The file is not synced, because a trial may crash the program but not the machine.
void TrialProposals::begin_attempt(int sequence) const {
    storage::make_folder_durably(attempts_file().parent_path());
    storage::replace_file(attempts_file(),
                          fmt::format("{} {}\n", sequence, attempts(sequence) + 1));
}

void TrialProposals::forget_attempts() {
    std::error_code error;
    std::filesystem::remove(attempts_file(), error);
}

/// Prepares the trial that an earlier launch has proposed and not finished. Returns nothing if the
/// trial has failed. The first trial never fails here, because a search depends on it.
std::optional<PreparedTrial> TrialProposals::repeat() {
    ProposedTrial proposed = own().trials().back().proposed;
    const int sequence = proposed.sequence;
    const TrialId parent = proposed.parent;
    if (!parent.is_root() && parent.group != own().group())
        await(parent.group, 2 * std::int64_t{parent.sequence} + 2);
    auto prepared = inherit(std::move(proposed));
    std::string reason;
    if (!prepared) {
        reason = fmt::format("the weights of its parent, trial {} of group {}, are missing",
                             parent.sequence, parent.group);
    } else if (sequence > 0 && attempts(sequence) >= kMaxAttempts) {
        reason = fmt::format("{} launches in a row have ended while they trained it", kMaxAttempts);
    } else {
        return prepared;
    }
    log_.warn("trial {} fails: {}", sequence, reason);
    fail(std::move(reason), 0);
    return std::nullopt;
}

std::optional<PreparedTrial> TrialProposals::next() {
    try {
        std::optional<PreparedTrial> prepared = prepare();
        if (prepared) begin_attempt(prepared->proposed.sequence);
        return prepared;
    } catch (const Interrupted&) {
        return std::nullopt;
    }
}

std::optional<PreparedTrial> TrialProposals::prepare() {
    if (own().lines() % 2 == 1) {  // the last proposal has no result
        if (auto repeated = repeat()) return repeated;
        if (is_over()) return std::nullopt;
    }
    search::Request wanted = request();
    const int first_draw = verification::first_draw(limits_, basis_, wanted);
    wanted.draw = first_draw;
    const std::vector<const search::History*> all = histories();
    for (;;) {
        const ProposedTrial proposed = search::propose(basis_, wanted, all);
        if (!verification::refused_by(limits_, basis_, proposed).empty()) {
            ensure(wanted.draw < basis_.settings.max_draws,
                   "trial {}: even the graph of its parent exceeds search.max_flops_factor",
                   wanted.sequence);
            ++wanted.draw;
            continue;
        }
        if (auto prepared = inherit(proposed)) {
            writer_.append(proposed);
            return prepared;
        }
        wanted.missing.push_back(proposed.parent);
        wanted.draw = first_draw;
    }
}

}  // namespace hpcai::group
