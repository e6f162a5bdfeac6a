// SPDX-License-Identifier: Apache-2.0
#include "search_job.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hpcai/base/units.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/group/make_gradient_reducer.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/verification/search.hpp>

#include "epoch_source.hpp"
#include "resumable_record.hpp"
#include "search_checkpoints.hpp"
#include "trial_files.hpp"
#include "trial_proposals.hpp"
#include "trial_run.hpp"

namespace hpcai::group {
namespace {

constexpr const char* kSearchArray = "search";  // of the array in a checkpoint
constexpr double kMaxCount = 0x1p53;

class NoLog final : public Logger {
    void write(Severity, std::string_view) override {}
};

class SearchJob {
public:
    SearchJob(const GroupTraining& training, GroupResult& result)
        : training_(training),
          result_(result),
          is_leader_(training.group.rank() == 0),
          steps_per_epoch_(count_steps_per_epoch()),
          source_(training.context, training.resources, nullptr, steps_per_epoch_),
          resumable_(source_, result.record),
          checkpoints_(training, content()) {
        const std::int64_t memory = smallest_memory(training);
        comm::collective_try(training.group, [&] {
            if (is_leader_)
                proposals_.emplace(training.context, training.log, memory,
                                   name_of(training.resources.precision),
                                   [this] { return may_wait(); });
        });
    }

    StepTimes run() {
        if (training_.context.is_resumed) resume();
        training_.progress.begin();
        training_.watch.begin(finished_steps());
        try {
            while (!is_over()) run_trial();
        } catch (const Error& error) {
            if (is_leader_ && !may_come_from_trial(error)) proposals_->forget_attempts();
            throw;
        }
        training_.watch.end();
        if (training_.state.reducer == nullptr) renew_reducer();  // the last trial lacked memory
        take_best();
        totals_.costs = resumable_.costs();
        totals_.bad_samples = source_.bad_samples();
        StepTimes times = gather_measurements(training_, totals_, result_);
        count_bad_samples();
        return times;
    }

private:
    std::int64_t count_steps_per_epoch() const {
        const config::Config& config = training_.context.config;
        GroupRecord& record = result_.record;
        record.samples_drawn = training_.resources.samples.training->samples();
        const std::int64_t steps = record.samples_drawn / config.training.batch_size;
        require(steps > 0, ExitCode::data,
                "{} training samples do not fill one batch of training.batch_size {}",
                record.samples_drawn, config.training.batch_size);
        return steps;
    }

    std::int64_t finished_steps() const { return finished_.epochs * steps_per_epoch_; }

    /// Returns the leader's `value` on all ranks. Collective.
    template <typename T>
    T broadcast(T value) {
        training_.group.broadcast(std::as_writable_bytes(std::span(&value, 1)), 0);
        return value;
    }

    bool is_over() {
        const bool has_all = is_leader_ && proposals_->is_over();
        if (broadcast<char>(has_all) != 0) return true;
        checkpoints_.poll();
        return false;
    }

    bool is_time_over() const {
        const double limit = training_.context.config.search.duration_seconds;
        return limit > 0 && training_.clock.seconds() >= limit;
    }

    /// Logs and counts the bad samples of the hold-out, besides those of the training.
    void count_bad_samples() {
        log_bad_samples(bad_samples_, "hold-out", training_.log);
        std::int64_t bad = bad_samples_.count;
        training_.group.all_reduce_sum(std::span(&bad, 1));
        result_.bad_samples += bad;
    }

    /// What a checkpoint has besides the steps.
    ExtraState content() {
        const auto save = [this](training::Snapshot& to) {
            const GroupRecord& record = result_.record;
            resumable_.content().save(to);
            to.put_numbers(kSearchArray, {static_cast<double>(record.audit.passed),
                                          static_cast<double>(record.skipped_steps),
                                          record.final_training_loss.value.value_or(0),
                                          static_cast<double>(totals_.buckets),
                                          static_cast<double>(totals_.gradient_bytes),
                                          static_cast<double>(bad_samples_.count)});
        };
        const auto restore = [this](const training::Snapshot& from) {
            GroupRecord& record = result_.record;
            resumable_.content().restore(from);
            const auto numbers = from.numbers(kSearchArray, 6);
            const auto integer = [&](std::size_t index) {
                return from.integer(kSearchArray, numbers[index], 0,
                                    static_cast<std::int64_t>(kMaxCount));
            };
            record.audit.passed = integer(0);
            record.skipped_steps = integer(1);
            record.final_training_loss = {numbers[2], ""};
            totals_.buckets = integer(3);
            totals_.gradient_bytes = integer(4);
            bad_samples_.count = integer(5);
        };
        return {save, restore};
    }

    /// Counts the trials that earlier launches have finished before the last `dropped` completed
    /// ones.
    void count_finished(std::int64_t dropped = 0) {
        finished_ = broadcast(is_leader_ ? search::progress(proposals_->own(), dropped)
                                         : search::Progress{});
    }

    /// After `damage` to the checkpoint of the last counted trial, no longer counts this trial, so
    /// that it is trained again. Throws if it is the first trial, or if other groups may depend on
    /// it.
    void fall_back(const std::string& damage, std::int64_t dropped) {
        const context::RunContext& context = training_.context;
        const bool is_alone = context.controller.layout().groups == 1 ||
                              context.config.search.history == config::SearchHistory::own;
        require(
            is_alone && finished_.trials > 1, ExitCode::data,
            "{}; the group's last trial cannot be trained again: {}", damage,
            is_alone ? "no older checkpoint can be used" : "other groups may have used its result");
        count_finished(dropped);
    }

    /// Restores the newest checkpoint that can be used. Only then removes later trials from the
    /// history: if no checkpoint can be used, the history is as before.
    void restore() {
        count_finished();
        std::string damage;  // of the newest checkpoint
        std::int64_t dropped = 0;
        for (bool is_restored = finished_.trials == 0; !is_restored;) {
            try {
                checkpoints_.restore(finished_steps());
                is_restored = true;
            } catch (const Error& error) {
                if (error.code() != ExitCode::data) throw;  // the communicator has failed
                if (damage.empty()) damage = error.what();
                fall_back(damage, ++dropped);
            }
        }
        if (dropped == 0) return;
        comm::collective_try(training_.group, [&] {
            if (!is_leader_) return;
            const std::string which =
                dropped == 1 ? "trial is" : fmt::format("{} trials are", dropped);
            training_.log.warn("the last {} trained again: {}", which, damage);
            for (; dropped > 0; --dropped) proposals_->reopen_last_completed();
        });
    }

    /// Continues after the last trial that an earlier launch has finished.
    void resume() {
        restore();
        training_.clock.add(finished_.end_seconds);
        result_.record.continuations.push_back(
            {finished_steps(), training_.context.launch.started_utc});
        if (is_leader_)
            training_.log.info("the search resumes after {}", counted(finished_.trials, "trial"));
    }

    /// Called while the leader waits for another group. TrialProposals limits the wait.
    bool may_wait() {
        training_.progress.keep_alive();
        return !checkpoints_.is_stop_requested();
    }

    /// Returns the next trial on all ranks; nothing if the search is over. A replay waits for the
    /// trials of other groups, which may take any time.
    std::optional<PreparedTrial> propose(FinishedTrial& trial) {
        const bool is_replay =
            training_.context.config.search.history == config::SearchHistory::recorded;
        training_.watch.resume();
        training_.watch.pause(
            "proposal", is_replay ? kNoTimeLimit : training_.watch.checkpoint_timeout_seconds());
        trial.begin_seconds = training_.clock.seconds();
        std::optional<PreparedTrial> next;
        comm::collective_try(training_.group, [&] {
            if (is_leader_) next = proposals_->next();
        });
        if (is_replay) checkpoints_.end_wait();
        if (broadcast<char>(is_leader_ && !next) != 0) {
            checkpoints_.poll();  // stops after an interrupted wait
            return std::nullopt;
        }
        PreparedTrial prepared = next ? *std::move(next) : PreparedTrial{};
        const std::string text =
            comm::broadcast(training_.group, records::to_json_line(prepared.proposed));
        prepared.proposed = records::from_json<ProposedTrial>(text, kTrialsName);
        trial.sequence = prepared.proposed.sequence;
        trial.proposing_seconds = training_.clock.seconds() - trial.begin_seconds;
        return prepared;
    }

    /// Replaces the reducer, which has memory and sums of the last trial's gradients. The group has
    /// logged its kind before.
    void renew_reducer() {
        NoLog silent;
        training_.state.reducer.reset();
        training_.state.reducer = make_gradient_reducer(training_.context, training_.resources,
                                                        training_.replicas, silent);
    }

    /// Makes the model and the trainer of a trial on all ranks. If memory does not suffice on one
    /// of them, all throw Error(internal).
    void build(PreparedTrial& prepared, FinishedTrial& trial, std::optional<TrialRun>& run) {
        training_.watch.pause("building", training_.watch.checkpoint_timeout_seconds());
        const double begin = training_.clock.seconds();
        renew_reducer();
        const auto build_model = [&] {
            training_.state.replace_model(training_.context, training_.resources,
                                          search::morphs_of(prepared.proposed.edits));
        };
        comm::collective_try(training_.group, build_model);
        Model& model = *training_.state.model;
        model.sync_batch_norm_group().connect(
            training_.replicas, all_reduce_options_of(training_.context).node_of_rank);
        model.write_initial(
            broadcast_weights(training_.group, model.graph(), std::move(prepared.weights)));
        const TrialSetup setup{prepared.proposed, steps_per_epoch_,
                               finished_steps(),  static_cast<int>(finished_.epochs),
                               checkpoints_,      faults_};
        comm::collective_try(training_.group,
                             [&] { run.emplace(training_, source_, setup, trial); });
        trial.building_seconds = training_.clock.seconds() - begin;
    }

    /// Trains the trial's epochs, or fewer if the search ends. Returns the number trained.
    int train(TrialRun& run, const FinishedTrial& trial) {
        const int epochs = config::trial_epochs(training_.context.config.search, trial.sequence);
        int trained = 0;
        while (true) {
            run.train_epoch(trained++);
            if (trained == epochs || broadcast<char>(is_time_over()) != 0) return trained;
            checkpoints_.poll();
        }
    }

    void run_trial() {
        FinishedTrial trial;
        std::optional<PreparedTrial> prepared = propose(trial);
        if (!prepared) return;
        std::optional<TrialRun> run;  // before `try`, because unwinding it would abort the reducer
        std::string failure;
        int trained = 0;
        try {
            build(*prepared, trial, run);
            trained = train(*run, trial);
        } catch (const Error& error) {
            failure = failure_of_trial(error, training_.group.size() == 1);
        }
        if (run) forget_faults(*run);
        if (!failure.empty()) return give_up(trial.sequence, failure);
        add_costs(*run);
        if (run->bad_samples().count > bad_samples_.count) bad_samples_ = run->bad_samples();
        comm::collective_try(training_.group, [&] {
            if (is_leader_) store_trial(training_, *run, proposals_->root(), trial);
        });
        ++finished_.trials;
        finished_.epochs += trained;
        checkpoints_.write(finished_steps());
        comm::collective_try(training_.group, [&] {
            if (is_leader_) finish(std::move(trial));
        });
    }

    /// Ends a trial whose model cannot be trained. Throws if no trial has finished yet.
    void give_up(int sequence, const std::string& reason) {
        require(finished_.trials > 0, ExitCode::internal, "trial {}: {}", sequence, reason);
        training_.steps.truncate(finished_steps());
        counted_wait_seconds_ = source_.batches().wait_seconds();
        comm::collective_try(training_.group, [&] {
            if (!is_leader_) return;
            training_.log.warn("trial {} failed: {}", sequence, reason);
            proposals_->fail(reason, training_.clock.seconds());
            remove_oldest_weights(training_.context, proposals_->own());
        });
    }

    /// Removes the faults of the trial's steps: another trial may take steps with these numbers.
    void forget_faults(const TrialRun& run) {
        const std::int64_t end = finished_steps() + run.steps();
        std::erase_if(faults_, [&](const training::Fault& fault) { return fault.step < end; });
    }

    void add_costs(TrialRun& run) {
        TrainingCosts costs = run.finish(result_.record);
        const double waited = source_.batches().wait_seconds();
        costs.input_wait_seconds = waited - std::exchange(counted_wait_seconds_, waited);
        costs.sent = training_.state.reducer->sent();
        resumable_.add(costs);
        totals_.buckets = std::max(totals_.buckets, run.buckets());
        totals_.gradient_bytes = std::max(
            totals_.gradient_bytes,
            static_cast<std::int64_t>(training_.state.model->store().gradients().size_bytes()));
    }

    /// Appends the trial to the history, after everything that it refers to is stored.
    void finish(FinishedTrial trial) {
        trial.end_seconds = training_.clock.seconds();
        training_.log.info("trial {}: {}, accuracy {:.4f} after {}, {:.1f} s", trial.sequence,
                           counted(std::ssize(training_.state.model->edits()), "edit"),
                           trial.accuracy.back(), counted(std::ssize(trial.accuracy), "epoch"),
                           trial.end_seconds - trial.begin_seconds);
        const int best_before =
            trial.sequence == 0 ? 0 : verification::best_trial(proposals_->own());
        proposals_->finish(std::move(trial));
        remove_weights(training_.context, proposals_->own(), best_before);
        remove_oldest_weights(training_.context, proposals_->own());
    }

    /// Makes the best trial's model with its trained weights, which all ranks read.
    void take_best() {
        const context::RunContext& context = training_.context;
        std::string text;
        if (is_leader_) {
            const search::History& own = proposals_->own();
            const auto best = static_cast<std::size_t>(verification::best_trial(own));
            text = records::to_json_line(own.trials()[best].proposed);
        }
        const auto best = records::from_json<ProposedTrial>(
            comm::broadcast(training_.group, std::move(text)), kTrialsName);
        comm::collective_try(training_.group, [&] {
            training_.state.load_model(
                context, training_.resources, search::morphs_of(best.edits),
                results::trial_weights(context.output, context.place.group, best.sequence));
        });
        if (!is_leader_) return;
        result_.search = verification::describe_search(proposals_->own());
        totals_.flops = result_.search->training_flops;
    }

    const GroupTraining& training_;
    GroupResult& result_;
    bool is_leader_;
    std::int64_t steps_per_epoch_;
    EpochSource source_;
    ResumableRecord resumable_;
    SearchCheckpoints checkpoints_;
    std::optional<TrialProposals> proposals_;  // only on the leader
    search::Progress finished_;                // equal on all ranks
    TrainingTotals totals_;
    // Bad hold-out samples, from the trial that has the most; the names are those of this launch.
    data::BadSampleReport bad_samples_;
    std::vector<training::Fault> faults_ = training::faults_of_environment();  // not yet injected
    double counted_wait_seconds_ = 0;  // input wait of source_ until the end of the last trial
};

}  // namespace

StepTimes run_search(const GroupTraining& training, GroupResult& result) {
    return SearchJob(training, result).run();
}

}  // namespace hpcai::group
