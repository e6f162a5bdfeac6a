// SPDX-License-Identifier: Apache-2.0
#include "worker_pool.hpp"

#include <utility>

#include "pack_copy.hpp"

namespace hpcai::data::staging {

WorkerPool::WorkerPool(std::int64_t count, int threads, std::function<void(std::int64_t)> work,
                       std::atomic<bool>& stop)
    : count_(count), work_(std::move(work)), stop_(stop), at_work_(threads) {
    try {
        for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work_on(); });
    } catch (...) {
        stop_ = true;  // or those that have started would do all of the work
        throw;
    }
}

WorkerPool::~WorkerPool() {
    stop_ = true;
}

void WorkerPool::work_on() {
    std::exception_ptr failure;
    try {
        for (std::int64_t i = next_++; i < count_ && !stop_; i = next_++) work_(i);
    } catch (const Stopped&) {
        failure = nullptr;
    } catch (...) {
        failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    if (failure) {
        stop_ = true;
        if (!failure_) failure_ = failure;
    }
    --at_work_;
    changed_.notify_all();
}

bool WorkerPool::wait(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, longest, [this] { return at_work_ == 0 || failure_ != nullptr; });
    return at_work_ == 0;
}

bool WorkerPool::has_failed() const {
    const std::lock_guard lock(mutex_);
    return failure_ != nullptr;
}

void WorkerPool::finish() {
    for (std::jthread& thread : threads_) {
        if (thread.joinable()) thread.join();
    }
    if (failure_) std::rethrow_exception(failure_);
}

}  // namespace hpcai::data::staging
