// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include <hpcai/metrics/step_statistics.hpp>
#include <hpcai/training/step_log.hpp>

namespace hpcai::training {
namespace {

using metrics::kPhaseSpreads;

constexpr std::size_t kColumns = 6 + std::size(kPhaseSpreads);  // numbers of a saved step
constexpr int kMaxEpoch = 65535;  // limit of workload.epochs, so a larger number is damaged

const metrics::NamedSpread& row_of(Phase phase) {
    return kPhaseSpreads[static_cast<std::size_t>(phase)];
}

}  // namespace

const char* name_of(Phase phase) {
    return row_of(phase).name;
}

void PhaseClock::begin(double now) {
    seconds_.fill(0);
    phase_ = Phase::other;
    phase_begin_ = now;
    last_communication_ = communication_();
    ++readings_;
}

void PhaseClock::enter(Phase phase, double now) {
    const double communication = communication_();
    const double elapsed = now - phase_begin_;
    // The two clocks may round differently.
    const double communicated = std::clamp(communication - last_communication_, 0.0, elapsed);
    seconds(phase_) += elapsed - communicated;
    seconds(Phase::communication) += communicated;
    phase_ = phase;
    phase_begin_ = now;
    last_communication_ = communication;
    ++readings_;
}

PhaseSeconds PhaseClock::end(double now) {
    enter(Phase::other, now);
    PhaseSeconds result;
    for (std::size_t phase = 0; phase < seconds_.size(); ++phase) {
        result.*kPhaseSpreads[phase].phase = seconds_[phase];
    }
    return result;
}

void StepTrace::after(const graph::KernelCall& call) {
    if (!is_on_) return;
    events_.push_back({TraceLane::kernels, call.name, std::string(ops::name_of(call.pass)),
                       kernel_begin_, now_()});
}

void StepTrace::phase(Phase phase, double begin, double end) {
    if (is_on_) events_.push_back({TraceLane::steps, name_of(phase), "", begin, end});
}

void StepTrace::step(std::int64_t number, double begin, double end) {
    if (!is_on_) return;
    events_.push_back({TraceLane::steps, fmt::format("step {}", number), "", begin, end});
}

void StepTrace::log_all_reduce(std::size_t bucket, bool is_complete) {
    if (!is_on_) return;
    if (!is_complete) {
        all_reduce_begins_[bucket] = now_();
    } else if (const auto begin = all_reduce_begins_.extract(bucket)) {
        events_.push_back(
            {TraceLane::all_reduces, fmt::format("bucket {}", bucket), "", begin.mapped(), now_()});
    }
}

StepLog::StepLog(StepLogOptions options, device::Device& device)
    : options_(std::move(options)),
      device_(device),
      is_asynchronous_(device.can_record()),
      clock_([this] { return communication_(); }),
      trace_(options_.now, options_.trace_steps) {}

void StepLog::reserve(std::int64_t steps) {
    steps_.reserve(static_cast<std::size_t>(steps));
    step_seconds_.reserve(static_cast<std::size_t>(steps));
}

void StepLog::begin(double now) {
    begin_ = now;
    if (unread_ == 0) unread_begin_ = now;
    if (!options_.measure_phases) return;
    trace_.enable(trace_.covers(std::ssize(steps_)));
    clock_.begin(now);
}

void StepLog::enter(Phase phase) {
    if (options_.flight != nullptr) options_.flight->enter(name_of(phase));
    if (!options_.measure_phases) return;
    const double now = options_.now();
    if (!is_asynchronous_) trace_.phase(clock_.phase(), clock_.entered_at(), now);
    clock_.enter(phase, now);
    device_.begin_phase(name_of(phase));
}

void StepLog::log_all_reduce(std::size_t bucket, std::size_t bytes, bool is_complete) {
    trace_.log_all_reduce(bucket, is_complete);
    if (options_.flight == nullptr) return;
    if (is_complete) {
        options_.flight->end_all_reduce(bucket);
    } else {
        options_.flight->begin_all_reduce(bucket, bytes);
    }
}

void StepLog::end_step(StepRecord record, bool is_read) {
    const double now = options_.now();
    record.end_seconds = now;
    if (options_.measure_phases && !is_asynchronous_) {
        trace_.phase(clock_.phase(), clock_.entered_at(), now);
        record.phases = clock_.end(now);
        trace_.step(record.step, begin_, now);
    } else if (device_phases_) {
        record.phases = *device_phases_;
        trace_device(record);
    }
    device_phases_.reset();
    ++unread_;
    if (is_read || !is_asynchronous_) {
        const double seconds = (now - unread_begin_) / static_cast<double>(unread_);
        for (; unread_ > 0; --unread_) step_seconds_.push_back(seconds);
    }
    steps_.push_back(record);
    begin(now);
}

/// Traces the device's phases backwards from the end of the step, at which its results were read.
void StepLog::trace_device(const StepRecord& record) {
    double end = record.end_seconds;
    for (const Phase phase :
         {Phase::optimizer, Phase::communication, Phase::backward, Phase::forward}) {
        const double begin = end - record.phases.*row_of(phase).phase;
        trace_.phase(phase, begin, end);
        end = begin;
    }
    trace_.step(record.step, end, record.end_seconds);
}

void StepLog::save(Snapshot& to, std::int64_t saved) const {
    const std::span<const StepRecord> unsaved =
        std::span(steps_).subspan(static_cast<std::size_t>(saved));
    std::vector<double> rows;
    rows.reserve(unsaved.size() * kColumns);
    for (const StepRecord& step : unsaved) {
        rows.insert(rows.end(), {static_cast<double>(step.step), static_cast<double>(step.epoch),
                                 static_cast<double>(step.samples), step.end_seconds,
                                 step.learning_rate, step.loss});
        for (const auto& row : kPhaseSpreads) rows.push_back(step.phases.*row.phase);
    }
    to.put_numbers("steps", std::move(rows));
    to.put_numbers("step_seconds", {step_seconds_.begin() + saved, step_seconds_.end()});
}

void StepLog::restore(const Snapshot& from, std::int64_t steps, std::int64_t restored) {
    const auto count = static_cast<std::size_t>(steps - restored);
    const std::span<const double> seconds = from.numbers("step_seconds", count);
    std::span<const double> rows = from.numbers("steps", count * kColumns);
    std::vector<StepRecord> found;
    for (; !rows.empty(); rows = rows.subspan(kColumns)) {
        const std::int64_t number = restored + std::ssize(found);
        StepRecord& step = found.emplace_back();
        step.step = from.integer("steps", rows[0], number, number);
        step.epoch = static_cast<int>(from.integer("steps", rows[1], 0, kMaxEpoch));
        step.samples = from.integer("steps", rows[2], 0, std::int64_t{1} << 53);
        step.end_seconds = rows[3];
        step.learning_rate = rows[4];
        step.loss = rows[5];
        std::size_t column = 6;
        for (const auto& row : kPhaseSpreads) step.phases.*row.phase = rows[column++];
    }
    truncate(restored);
    steps_.insert(steps_.end(), found.begin(), found.end());
    step_seconds_.insert(step_seconds_.end(), seconds.begin(), seconds.end());
}

void StepLog::truncate(std::int64_t steps) {
    const auto count = static_cast<std::size_t>(steps);
    steps_.resize(std::min(count, steps_.size()));
    step_seconds_.resize(std::min(count, step_seconds_.size()));
    unread_ = 0;
    device_phases_.reset();
}

}  // namespace hpcai::training
