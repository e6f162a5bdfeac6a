// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/training/trainer.hpp>

/// The state of a Trainer that outlives a program.
namespace hpcai::training {
namespace {

constexpr const char* kProgress = "progress";
constexpr const char* kStatistics = "statistics";

std::string name_of_shared(std::size_t index) {
    return index == 0 ? "parameters" : fmt::format("optimizer_state.{}", index - 1);
}

}  // namespace

/// Returns the arrays that are the same on all ranks of a slice.
std::vector<std::span<float>> Trainer::shared_values() {
    std::vector<std::span<float>> all{store_.parameters()};
    for (int state = 0; state < store_.states(); ++state) all.push_back(store_.state(state));
    return all;
}

/// A wrong replica that is saved would become that of all ranks, and no audit could find it.
void Trainer::examine() {
    check_parameters(fmt::format("step {}", steps_done_));
    if (!audit_.is_due(steps_done_)) audit_.now(steps_done_);  // else it has just been
}

std::size_t Trainer::saved_bytes() {
    std::size_t bytes = store_.statistics().size_bytes();
    if (replicas_.rank() != 0) return bytes;
    for (const std::span<float> values : shared_values()) bytes += values.size_bytes();
    return bytes;
}

void Trainer::save(Snapshot& to) {
    const double seconds = epoch_.seconds_before + epoch_.seconds_of_steps;
    ensure(epoch_.unread_steps == 0, "{} steps are unread where a training is saved",
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
    const auto whole = [&](std::size_t index, std::int64_t most) {
        return from.whole(kProgress, progress[index], 0, most);
    };
    const std::int64_t epochs = config_.workload.epochs;
    const std::int64_t epoch = whole(1, epochs - 1);
    const std::int64_t steps_of_epoch = whole(2, steps_per_epoch_);
    const std::int64_t steps = whole(0, steps_per_epoch_ * epochs);
    if (steps != epoch * steps_per_epoch_ + steps_of_epoch) {
        from.refuse(kProgress, fmt::format("{} steps of epoch {} are not step {}", steps_of_epoch,
                                           epoch, steps));
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
    skipped_steps_ = whole(6, steps);
    audit_.restore(whole(7, std::numeric_limits<std::int32_t>::max()));
    steps_done_ = steps;
    is_resumed_ = true;
}

void Trainer::share_parameters() {
    constexpr std::size_t kPiece = std::size_t{1} << 24;  // values
    if (replicas_.size() == 1) return;
    for (const std::span<float> values : shared_values()) {
        for (std::size_t begin = 0; begin < values.size(); begin += kPiece) {
            const std::span<float> part =
                values.subspan(begin, std::min(kPiece, values.size() - begin));
            std::vector<float> piece = store_.read(part);
            replicas_.broadcast(std::as_writable_bytes(std::span(piece)), 0);
            if (replicas_.rank() != 0) store_.write(piece, part);
        }
    }
}

}  // namespace hpcai::training
