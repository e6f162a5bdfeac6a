// SPDX-License-Identifier: Apache-2.0
#include "prefetcher.hpp"

#include <utility>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>

namespace hpcai::data {
namespace {

template <typename Call>
std::exception_ptr failure_of(const Call& call) {
    try {
        call();
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}

}  // namespace

Prefetcher::Prefetcher(int slots, int threads, Fill fill, Complete complete)
    : fill_(std::move(fill)), complete_(std::move(complete)) {
    ensure(slots >= 2 && threads >= 1, "prefetcher with {} slots and {} threads", slots, threads);
    slots_.resize(slots);
    for (int i = 0; i < threads; ++i) {
        threads_.emplace_back([this](const std::stop_token& stop) { run_thread(stop); });
    }
}

Prefetcher::~Prefetcher() {
    for (std::jthread& thread : threads_) thread.request_stop();  // all, before the first join
}

void Prefetcher::cancel() {
    std::unique_lock lock(mutex_);
    batches_ = 0;
    next_row_ = 0;
    row_done_.wait(lock, [this] { return filling_threads_ == 0; });
    for (Slot& slot : slots_) slot = Slot{};
    delivered_batches_ = 0;
    released_batches_ = 0;
}

void Prefetcher::begin(std::int64_t batches, std::int64_t rows, std::int64_t first) {
    ensure(batches >= 0 && rows >= 1, "{} batches of {} rows", batches, rows);
    ensure(first >= 0 && first <= batches, "first batch {} of {}", first, batches);
    {
        const std::lock_guard lock(mutex_);
        ensure(batches_ == 0 && filling_threads_ == 0, "begin() without cancel() of a prefetcher");
        rows_ = rows;
        batches_ = batches;
        next_row_ = first * rows;
        delivered_batches_ = first;
        released_batches_ = first;
    }
    work_available_.notify_all();
}

bool Prefetcher::has_work() const {
    const auto slots = static_cast<std::int64_t>(slots_.size());
    return next_row_ < batches_ * rows_ && next_row_ / rows_ < released_batches_ + slots;
}

void Prefetcher::run_thread(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (true) {
        work_available_.wait(lock, stop, [this] { return has_work(); });
        if (stop.stop_requested()) return;
        const std::int64_t batch = next_row_ / rows_;
        const std::int64_t row = next_row_ % rows_;
        ++next_row_;
        const int index = static_cast<int>(batch % std::ssize(slots_));
        Slot& slot = slots_[index];
        if (row == 0) {
            slot = Slot{};
            slot.rows_left = rows_;
        }
        ++filling_threads_;
        lock.unlock();
        std::exception_ptr failure = failure_of([&] { fill_(index, batch, row); });
        lock.lock();
        if (complete_ && slot.rows_left == 1 && !failure && !slot.failure) {
            lock.unlock();
            failure = failure_of([&] { complete_(index, batch); });
            lock.lock();
        }
        --filling_threads_;
        finish_row(slot, batch, row, std::move(failure));
    }
}

void Prefetcher::finish_row(Slot& slot, std::int64_t batch, std::int64_t row,
                            std::exception_ptr failure) {
    // Keep the failure of the first row, not of the fastest thread, for a deterministic message.
    if (failure && (!slot.failure || row < slot.failed_row)) {
        slot.failure = std::move(failure);
        slot.failed_row = row;
    }
    if (--slot.rows_left == 0) slot.ready_batch = batch;
    if (slot.rows_left == 0 || filling_threads_ == 0) row_done_.notify_all();
}

int Prefetcher::next() {
    const Stopwatch watch;  // first, because threads that this call wakes may take its core
    std::unique_lock lock(mutex_);
    ensure(delivered_batches_ < batches_, "batch {} of {}", delivered_batches_, batches_);
    if (released_batches_ != delivered_batches_) {
        released_batches_ = delivered_batches_;
        work_available_.notify_all();
    }
    const std::int64_t batch = delivered_batches_++;
    const std::size_t index = batch % slots_.size();
    Slot& slot = slots_[index];
    row_done_.wait(lock, [&slot, batch] { return slot.ready_batch == batch; });
    wait_seconds_ += watch.seconds();
    if (slot.failure) std::rethrow_exception(slot.failure);
    return static_cast<int>(index);
}

}  // namespace hpcai::data
