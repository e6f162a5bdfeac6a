// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "record_checks.hpp"

namespace hpcai::records {
namespace {

constexpr std::int64_t kMaxTrialCount = std::int64_t{1} << 50;  // sums over trials fit in 64 bits

void check_count(std::int64_t count, const Place& at) {
    if (count < 0 || count > kMaxTrialCount) at.fail(fmt::format("0 to {}", kMaxTrialCount), count);
}

void check_id(const TrialId& id, bool may_be_root, const Place& at) {
    const bool is_root = id == TrialId{};
    if (is_root ? !may_be_root : id.group < 0 || id.sequence < 0) {
        at.fail(may_be_root ? "(group, sequence) or (-1, -1)" : "(group, sequence)",
                fmt::format("({}, {})", id.group, id.sequence));
    }
}

void check_seconds(double seconds, const Place& at) {
    if (!(std::isfinite(seconds) && seconds >= 0)) at.fail("a number of at least 0", seconds);
}

/// Checks that accuracies are in [0, 1], and that epochs end in order within the trial.
void check_epochs(const FinishedTrial& trial, const Place& place) {
    if (trial.accuracy.size() != trial.epoch_seconds.size()) {
        place.key("epoch_seconds")
            .fail(fmt::format("{} numbers, as in accuracy", trial.accuracy.size()),
                  trial.epoch_seconds.size());
    }
    double last = trial.begin_seconds;
    for (std::size_t epoch = 0; epoch < trial.accuracy.size(); ++epoch) {
        const double accuracy = trial.accuracy[epoch], end = trial.epoch_seconds[epoch];
        if (!(accuracy >= 0 && accuracy <= 1))
            place.key("accuracy").index(epoch).fail("0 to 1", accuracy);
        if (!(end >= last && end <= trial.end_seconds))
            place.key("epoch_seconds")
                .index(epoch)
                .fail("a time from the previous end to end_seconds", end);
        last = end;
    }
}

void check_digest(const std::string& digest, const Place& at) {
    const bool is_legal =
        digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!is_legal) at.fail("64 hexadecimal digits", digest);
}

/// Checks that a failed trial has no results, and a completed one has all.
void check_state(const FinishedTrial& trial, const Place& place) {
    if (trial.state == TrialState::completed) {
        if (trial.accuracy.empty())
            place.key("accuracy").fail("the accuracy of at least one epoch", "nothing");
        return check_digest(trial.digest, place.key("digest"));
    }
    if (!trial.accuracy.empty())
        place.key("accuracy").fail("nothing, because the trial failed", trial.accuracy.size());
    for (const auto& [key, samples] : {std::pair{"samples_trained", trial.samples_trained},
                                       {"samples_evaluated", trial.samples_evaluated}}) {
        if (samples != 0) place.key(key).fail("0, because the trial failed", samples);
    }
}

}  // namespace

void check(const ProposedTrial& trial, const Place& place) {
    check_count(trial.sequence, place.key("sequence"));
    check_count(trial.draw, place.key("draw"));
    if (trial.draw > kMaxRefusedDraws)
        place.key("draw").fail(fmt::format("0 to {}", kMaxRefusedDraws), trial.draw);
    check_count(trial.memory_bytes, place.key("memory_bytes"));
    check_id(trial.parent, true, place.key("parent"));
    for (std::size_t i = 0; i < trial.missing.size(); ++i) {
        check_id(trial.missing[i], false, place.key("missing").index(i));
    }
    for (std::size_t i = 0; i < trial.seen.size(); ++i) {
        check_count(trial.seen[i], place.key("seen").index(i));
    }
    for (std::size_t i = 0; i < trial.hyper_parameters.size(); ++i) {
        const double value = trial.hyper_parameters[i].value;
        if (!std::isfinite(value))
            place.key("hyper_parameters").index(i).key("value").fail("a finite number", value);
    }
}

void check(const FinishedTrial& trial, const Place& place) {
    check_count(trial.sequence, place.key("sequence"));
    check_count(trial.samples_trained, place.key("samples_trained"));
    check_count(trial.samples_evaluated, place.key("samples_evaluated"));
    for (std::size_t i = 0; i < trial.flops.size(); ++i) {
        check_count(trial.flops[i].training, place.key("flops").index(i).key("training"));
        check_count(trial.flops[i].evaluation, place.key("flops").index(i).key("evaluation"));
    }
    for (const auto& [key, seconds] : {std::pair{"begin_seconds", trial.begin_seconds},
                                       {"end_seconds", trial.end_seconds},
                                       {"proposing_seconds", trial.proposing_seconds},
                                       {"building_seconds", trial.building_seconds},
                                       {"training_seconds", trial.training_seconds},
                                       {"evaluating_seconds", trial.evaluating_seconds}}) {
        check_seconds(seconds, place.key(key));
    }
    if (trial.end_seconds < trial.begin_seconds)
        place.key("end_seconds").fail("a time not before begin_seconds", trial.end_seconds);
    check_epochs(trial, place);
    check_state(trial, place);
}

}  // namespace hpcai::records
