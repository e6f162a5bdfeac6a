// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/training/trainer.hpp>

namespace hpcai::training {
namespace {

constexpr const char* kRemedy =
    "try a lower training.learning_rate or a longer training.warmup_epochs";
constexpr const char* kScaleRemedy =
    "try a lower training.loss_scale, 0 for a dynamic one, or a lower training.learning_rate";

/// Reads the values in chunks, because host memory may be too small for a copy of all parameters.
bool all_finite(const graph::ParameterStore& store, std::span<const float> values) {
    constexpr std::size_t kChunk = std::size_t{1} << 20;
    for (std::size_t begin = 0; begin < values.size(); begin += kChunk) {
        const std::size_t size = std::min(kChunk, values.size() - begin);
        const std::vector<float> chunk = store.read(values.subspan(begin, size));
        if (!std::ranges::all_of(chunk, [](float value) { return std::isfinite(value); })) {
            return false;
        }
    }
    return true;
}

std::vector<int> shards_of(const TrainerSetup& setup, int ranks) {
    std::vector<int> shards(static_cast<std::size_t>(ranks), 0);
    for (int rank = 0; setup.pipeline != nullptr && rank < ranks; ++rank) {
        shards[rank] = setup.pipeline->layout.partition_of(rank);
    }
    return shards;
}

std::unique_ptr<StepRunner> make_step(const TrainerSetup& setup, device::Device& device,
                                      graph::ParameterStore& store, FaultInjector* injector) {
    auto callback = injector == nullptr ? nullptr : injector->before_all_reduce();
    const StepSetup step{setup.config, setup.network,      device, store, setup.reducer,
                         setup.log,    std::move(callback)};
    if (setup.pipeline == nullptr) return std::make_unique<TrainingStep>(step);
    return make_pipeline_step(step, *setup.pipeline);
}

constexpr const char* kProgress = "progress";
constexpr const char* kStatistics = "statistics";

std::string name_of_shared(std::size_t index) {
    return index == 0 ? "parameters" : fmt::format("optimizer_state.{}", index - 1);
}

}  // namespace

Trainer::Trainer(const TrainerSetup& setup, device::Device& device, graph::ParameterStore& store,
                 comm::Communicator& group)
    : config_(setup.config),
      device_(device),
      store_(store),
      group_(group),
      steps_per_epoch_(setup.steps_per_epoch),
      network_(setup.network),
      replicas_(setup.pipeline == nullptr ? group : setup.pipeline->replicas),
      injector_(
          make_fault_injector({setup.faults, setup.group, group.rank(), device, store, setup.log})),
      step_(make_step(setup, device, store, injector_.get())),
      log_(setup.log),
      earlier_steps_(setup.earlier_steps),
      earlier_epochs_(setup.earlier_epochs),
      schedule_(make_schedule(setup.config.training, setup.config.workload.epochs,
                              setup.steps_per_epoch)),
      shards_(shards_of(setup, group.size())),
      audit_(setup.config.run.audit_steps, device, store, group, shards_),
      step_callback_(setup.step_callback),
      rank_name_(setup.rank_name) {
    if (log_ == nullptr) return;
    log_->set_communication_clock([this, batch_norm = setup.sync_batch_norm] {
        const double seconds = batch_norm == nullptr ? 0 : batch_norm->accounting().seconds;
        return step_->communication_seconds() + seconds;
    });
}

EpochReport Trainer::train_epoch(int number, data::BatchSource& source,
                                 const std::function<void(const StepReport&)>& listener) {
    try {
        return train_steps(number, source, listener);
    } catch (const std::exception& error) {
        if (is_agreed(error)) throw;
        // Other ranks may wait for this rank. After the announcement, this rank can destroy its
        // pending requests without waiting for other ranks.
        group_.announce_failure(to_error(error));
        replicas_.announce_failure(to_error(error));
        throw;
    }
}

/// Returns whether all ranks throw this error after the same step, so that none waits for another.
bool Trainer::is_agreed(const std::exception& error) const {
    const bool has_shards = &replicas_ != &group_;
    return group_.size() == 1 ||
           (!has_shards && (dynamic_cast<const DivergedTraining*>(&error) != nullptr ||
                            dynamic_cast<const comm::AgreedError*>(&error) != nullptr));
}

EpochReport Trainer::train_steps(int number, data::BatchSource& source,
                                 const std::function<void(const StepReport&)>& listener) {
    begin_epoch(number);
    EpochReport& report = epoch_.report;
    while (report.steps < source.batches()) {
        run_step(source);
        // Reading results reports failures of other ranks, so it comes before any other wait.
        const bool is_read = must_read(report.steps == source.batches());
        if (is_read) read_results();
        listener({steps_done_, steps_per_epoch_ * config_.workload.epochs, number, last_loss_,
                  config_.training.batch_size, is_read});
        if (audit_.is_due(steps_done_)) audit_.audit(steps_done_);
        if (log_ != nullptr) log_step(is_read);
        epoch_.steps_seconds = epoch_.watch.seconds();
        if (is_read && step_callback_ != nullptr)
            step_callback_->after_results_read(*this, steps_done_);
    }
    device_.synchronize();
    report.seconds = epoch_.seconds_before + epoch_.steps_seconds;
    check_parameters(fmt::format("epoch {}", number + 1));
    group_.all_reduce_sum(std::span(&epoch_.loss_sum, 1));
    report.mean_loss = epoch_.loss_sum /
                       static_cast<double>(std::max<std::int64_t>(report.steps, 1)) /
                       static_cast<double>(group_.size());
    return report;
}

/// After a resume, the clock continues from the end of the checkpoint's last step, so the time of
/// the next step includes the loading of the checkpoint.
void Trainer::begin_epoch(int number) {
    if (!std::exchange(is_resumed_, false)) {
        epoch_ = {};
        epoch_.number = number;
        if (log_ != nullptr) log_->begin();
        return;
    }
    ensure(number == epoch_.number, "epoch {} is resumed as epoch {}", epoch_.number, number);
    epoch_.watch.restart();
    if (log_ == nullptr) return;
    const bool is_mid_epoch = epoch_.report.steps > 0 && epoch_.report.steps < steps_per_epoch_;
    if (is_mid_epoch) epoch_.seconds_before += log_->now() - log_->steps().back().end_seconds;
    log_->resume();
}

bool Trainer::must_read(bool is_last) const {
    return is_last || epoch_.unread_steps == step_->steps_between_reads() ||
           audit_.is_due(steps_done_) ||
           (step_callback_ != nullptr && step_callback_->must_read_results(steps_done_));
}

void Trainer::log_step(bool is_read) {
    StepRecord record;
    record.step = earlier_steps_ + steps_done_ - 1;
    record.epoch = earlier_epochs_ + epoch_.number;
    record.samples = config_.training.batch_size;
    record.learning_rate = schedule_(steps_done_ - 1);
    if (is_read) record.loss = last_loss_;
    log_->end_step(record, is_read);
}

/// A rank that cannot load a batch uses padding until results are read, so that others do not wait.
void Trainer::run_step(data::BatchSource& source) {
    const data::Batch* batch = nullptr;
    enter(log_, Phase::input_wait);
    try {
        add_name_to_failures([&] {
            if (!epoch_.failure) batch = &source.next();
        });
    } catch (...) {
        epoch_.failure = std::current_exception();
    }
    add_name_to_failures([&] {
        if (injector_ != nullptr) injector_->begin_step(earlier_steps_ + steps_done_);
        step_->run_batch(batch, schedule_(steps_done_), epoch_.failure != nullptr);
    });
    epoch_.report.samples += config_.training.batch_size;
    ++epoch_.report.steps;
    ++epoch_.unread_steps;
    ++steps_done_;
}

/// Adds this rank's name and the step to errors of `work`, except timeouts and other ranks' errors.
void Trainer::add_name_to_failures(const std::function<void()>& work) const {
    const auto is_own = [&](const Error& error) {
        return error.code() != ExitCode::watchdog &&
               dynamic_cast<const comm::AnnouncedError*>(&error) == nullptr;
    };
    const auto named = [&](const char* what) {
        if (rank_name_.empty()) return std::string(what);
        return fmt::format("{} ({}, step {})", what, rank_name_, earlier_steps_ + steps_done_);
    };
    try {
        work();
    } catch (const Error& error) {
        if (is_own(error)) throw Error(error.code(), named(error.what()));
        throw;
    } catch (const std::exception& error) {
        throw Error(ExitCode::internal, named(to_error(error).what()));
    }
}

void Trainer::read_results() {
    const StepResults results = step_->read();
    if (log_ != nullptr && results.phases) log_->set_device_phases(*results.phases);
    if (epoch_.failure || results.has_failed) {
        comm::collective_try(group_, [&] {
            if (epoch_.failure) std::rethrow_exception(epoch_.failure);
        });
    }
    skipped_steps_ = results.skipped_steps;
    if (results.has_diverged) report_divergence(epoch_.unread_steps);
    last_loss_ = results.loss_sum / static_cast<double>(std::max<std::int64_t>(results.samples, 1));
    epoch_.loss_sum += last_loss_ * static_cast<double>(epoch_.unread_steps);
    epoch_.unread_steps = 0;
}

/// Returns whether any rank has non-finite parameters, and whether all replicas of this shard do.
/// If all replicas do, the cause is numerical. The audit then skips this shard, because the bits of
/// NaNs may differ between replicas.
Trainer::NonFiniteParameters Trainer::non_finite_parameters() {
    const std::int64_t mine = all_finite(store_, store_.parameters()) ? 0 : 1;
    const std::vector<std::int64_t> non_finite = comm::all_gather(group_, mine);
    const int my_shard = shards_[group_.rank()];
    bool on_all_replicas = true;
    for (std::size_t rank = 0; rank < non_finite.size(); ++rank) {
        on_all_replicas &= shards_[rank] != my_shard || non_finite[rank] == 1;
    }
    return {std::ranges::count(non_finite, 1) > 0, on_all_replicas};
}

void Trainer::report_divergence(std::int64_t unread_steps) {
    // Audit first, because the cause may be a wrong bit on one rank and not the settings.
    audit_.audit(steps_done_ - 1, !non_finite_parameters().on_all_replicas);
    const std::string steps =
        unread_steps == 1
            ? fmt::format("step {}", steps_done_ - 1)
            : fmt::format("one of the steps {} to {}", steps_done_ - unread_steps, steps_done_ - 1);
    throw DivergedTraining(fmt::format("training diverged: the gradient of {} is not finite; {}",
                                       steps,
                                       config_.training.loss_scale > 1 ? kScaleRemedy : kRemedy));
}

/// Checks the parameters, because no later loss would show an overflow in the last update.
void Trainer::check_parameters(const std::string& when) {
    const NonFiniteParameters non_finite = non_finite_parameters();
    if (!non_finite.on_any_rank) return;
    audit_.audit(steps_done_, !non_finite.on_all_replicas);
    const std::vector<graph::Parameter>& parameters = network_.graph().parameters();
    for (std::size_t index = 0; index < parameters.size(); ++index) {
        const auto id = static_cast<graph::ParameterId>(index);
        if (all_finite(store_, store_.parameter(id))) continue;
        throw DivergedTraining(fmt::format("training diverged: {} is not finite after {}; {}",
                                           parameters[index].name, when, kRemedy));
    }
}

void Trainer::average_statistics() {
    const auto statistics = std::make_shared<std::vector<float>>(store_.read(store_.statistics()));
    try {
        replicas_.all_reduce_sum(*statistics);
    } catch (const std::exception&) {
        replicas_.keep_alive(statistics);  // late messages may arrive in this memory
        throw;
    }
    const float share = 1.0f / static_cast<float>(replicas_.size());
    for (float& value : *statistics) value *= share;
    store_.write(*statistics, store_.statistics());
}

/// Returns the arrays that are bitwise equal on all ranks that train the same parameters.
std::vector<std::span<float>> Trainer::shared_values() {
    std::vector<std::span<float>> all{store_.parameters()};
    for (int state = 0; state < store_.states(); ++state) all.push_back(store_.state(state));
    return all;
}

/// Audits before a checkpoint, because a resume copies one replica to all ranks, even a wrong one.
void Trainer::check_state() {
    check_parameters(fmt::format("step {}", steps_done_));
    // An audit that is due was just made by train_steps().
    if (!audit_.is_due(steps_done_)) audit_.audit(steps_done_);
}

std::size_t Trainer::saved_bytes() {
    std::size_t bytes = store_.statistics().size_bytes();
    if (replicas_.rank() != 0) return bytes;
    for (const std::span<float> values : shared_values()) bytes += values.size_bytes();
    return bytes;
}

void Trainer::save(Snapshot& to) {
    const double seconds = epoch_.seconds_before + epoch_.steps_seconds;
    ensure(epoch_.unread_steps == 0, "save() was called before the results of {} steps were read",
           epoch_.unread_steps);
    step_->save(to);
    if (replicas_.rank() == 0) {
        const std::vector<std::span<float>> shared = shared_values();
        for (std::size_t index = 0; index < shared.size(); ++index) {
            to.put(name_of_shared(index), store_.read(shared[index]));
        }
    }
    to.put(kStatistics, store_.read(store_.statistics()));
    to.put_numbers(kProgress,
                   {static_cast<double>(steps_done_), static_cast<double>(epoch_.number),
                    static_cast<double>(epoch_.report.steps), seconds, epoch_.loss_sum, last_loss_,
                    static_cast<double>(skipped_steps_), static_cast<double>(audit_.passed())});
    if (log_ != nullptr) log_->save(to);
}

void Trainer::restore(const Snapshot& from) {
    const std::span<const double> progress = from.numbers(kProgress, 8);
    const auto integer = [&](std::size_t index, std::int64_t max) {
        return from.integer(kProgress, progress[index], 0, max);
    };
    const std::int64_t epochs = config_.workload.epochs;
    const std::int64_t epoch = integer(1, epochs - 1);
    const std::int64_t steps_of_epoch = integer(2, steps_per_epoch_);
    const std::int64_t steps = integer(0, steps_per_epoch_ * epochs);
    if (steps != epoch * steps_per_epoch_ + steps_of_epoch) {
        from.fail(kProgress, fmt::format("step {} does not match {} steps of epoch {}", steps,
                                         steps_of_epoch, epoch));
    }
    step_->restore(from);
    if (replicas_.rank() == 0) {
        const std::vector<std::span<float>> shared = shared_values();
        for (std::size_t index = 0; index < shared.size(); ++index) {
            store_.write(from.floats(name_of_shared(index), shared[index].size()), shared[index]);
        }
    }
    store_.write(from.floats(kStatistics, store_.statistics().size()), store_.statistics());
    if (log_ != nullptr) log_->restore(from, steps);
    epoch_ = {};
    epoch_.number = static_cast<int>(epoch);
    epoch_.report.steps = steps_of_epoch;
    epoch_.report.samples = steps_of_epoch * config_.training.batch_size;
    epoch_.seconds_before = progress[3];
    epoch_.loss_sum = progress[4];
    last_loss_ = progress[5];
    skipped_steps_ = integer(6, steps);
    audit_.restore(integer(7, std::numeric_limits<std::int32_t>::max()));
    steps_done_ = steps;
    is_resumed_ = true;
}

void Trainer::broadcast_parameters() {
    constexpr std::size_t kChunk = std::size_t{1} << 24;  // values
    if (replicas_.size() == 1) return;
    for (const std::span<float> values : shared_values()) {
        for (std::size_t begin = 0; begin < values.size(); begin += kChunk) {
            const std::span<float> part =
                values.subspan(begin, std::min(kChunk, values.size() - begin));
            std::vector<float> chunk = store_.read(part);
            replicas_.broadcast(std::as_writable_bytes(std::span(chunk)), 0);
            if (replicas_.rank() != 0) store_.write(chunk, part);
        }
    }
}

std::string program_version() {
    return std::string("hpcai500 " HPCAI500_VERSION) +
           (faults_are_built_in() ? " with faults" : "");
}

}  // namespace hpcai::training
