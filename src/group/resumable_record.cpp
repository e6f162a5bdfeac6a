// SPDX-License-Identifier: Apache-2.0
#include "resumable_record.hpp"

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace hpcai::group {
namespace {

constexpr const char* kEpochs = "epoch_seconds";
constexpr const char* kCurve = "quality_by_epoch";
constexpr const char* kContinuations = "continuations";
constexpr const char* kBadSamples = "bad_samples";
constexpr std::size_t kUtcDigits = 20;  // of "2022-11-05T14:03:09Z"

/// Returns a line "<step> <UTC>" for each resumption.
std::string text_of(const std::vector<ContinuationRecord>& continuations) {
    std::string text;
    for (const ContinuationRecord& continuation : continuations) {
        text += fmt::format("{} {}\n", continuation.step, continuation.started_utc);
    }
    return text;
}

std::vector<ContinuationRecord> continuations_of(const training::Snapshot& from) {
    std::vector<ContinuationRecord> found;
    std::string_view text = from.text(kContinuations);
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        const std::size_t space = line.find(' ');
        const std::string_view digits = line.substr(0, space);
        const bool is_valid = space != std::string_view::npos && !digits.empty() &&
                              digits.size() < 16 &&
                              digits.find_first_not_of("0123456789") == std::string_view::npos &&
                              line.size() - space - 1 == kUtcDigits;
        if (!is_valid) from.fail(kContinuations, "expected lines of a step and a time");
        found.push_back({std::stoll(std::string(digits)), std::string(line.substr(space + 1))});
    }
    return found;
}

}  // namespace

TrainingCosts ResumableRecord::costs() const {
    TrainingCosts costs;
    costs.input_wait_seconds = sources_.source.batches().wait_seconds();
    costs.checkpoint_seconds = checkpoints_->delay_seconds();
    costs.sums = trainer_->buckets().accounting();
    costs.statistics = sources_.model.sync_batch_norm_group().accounting();
    costs.gradients = sources_.reducer.sent();
    costs.messages = trainer_->messages();
    costs.add(earlier_costs_);
    return costs;
}

ExtraState ResumableRecord::content() {
    return {[this](training::Snapshot& to) { save(to); },
            [this](const training::Snapshot& from) { restore(from); }};
}

void ResumableRecord::save(training::Snapshot& to) const {
    costs().save(to);
    to.put_numbers(kEpochs, record_.epoch_seconds);
    std::vector<double> curve;
    for (const EpochQualityRecord& point : record_.quality_by_epoch) {
        curve.insert(curve.end(),
                     {static_cast<double>(point.epoch), point.training_seconds, point.quality});
    }
    to.put_numbers(kCurve, std::move(curve));
    to.put_text(kContinuations, text_of(record_.continuations));
    const std::vector<std::uint32_t> bad = sources_.source.bad_sample_numbers();
    to.put_numbers(kBadSamples, {bad.begin(), bad.end()});
}

void ResumableRecord::restore(const training::Snapshot& from) {
    const TrainingCosts costs = TrainingCosts::from_snapshot(from);
    const std::span<const double> epochs = from.table(kEpochs, 1);
    std::vector<EpochQualityRecord> curve;
    for (std::span<const double> rows = from.table(kCurve, 3); !rows.empty();
         rows = rows.subspan(3)) {
        curve.push_back(
            {static_cast<int>(from.integer(kCurve, rows[0], 1, 65535)), rows[1], rows[2]});
    }
    std::vector<std::uint32_t> bad;
    for (const double number : from.table(kBadSamples, 1)) {
        bad.push_back(static_cast<std::uint32_t>(
            from.integer(kBadSamples, number, 0, std::numeric_limits<std::uint32_t>::max())));
    }
    record_.continuations = continuations_of(from);
    record_.epoch_seconds.assign(epochs.begin(), epochs.end());
    record_.quality_by_epoch = std::move(curve);
    earlier_costs_ = costs;
    sources_.source.restore_bad_samples(bad);
}

}  // namespace hpcai::group
