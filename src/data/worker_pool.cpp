// SPDX-License-Identifier: Apache-2.0
#include "worker_pool.hpp"

#include <algorithm>
#include <utility>

namespace hpcai::data {

WorkerPool::WorkerPool(std::int64_t count, int threads, std::function<void(std::int64_t)> work,
                       std::atomic<bool>& stop)
    : count_(count), work_(std::move(work)), stop_(stop), running_threads_(threads) {
    try {
        for (int i = 0; i < threads; ++i) {
            threads_.emplace_back([this] {
                run_tasks();
                const std::lock_guard lock(mutex_);
                --running_threads_;
                changed_.notify_all();
            });
        }
    } catch (...) {
        stop_ = true;  // otherwise the started threads would run all tasks
        throw;
    }
}

WorkerPool::~WorkerPool() {
    stop_ = true;
}

void WorkerPool::run_tasks() {
    for (std::int64_t i = next_++; i < count_ && !stop_; i = next_++) {
        try {
            work_(i);
        } catch (...) {
            const std::lock_guard lock(mutex_);
            stop_ = true;
            if (!failure_ || i < failed_task_) {
                failure_ = std::current_exception();
                failed_task_ = i;
            }
            changed_.notify_all();
        }
    }
}

bool WorkerPool::wait(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout,
                      [this] { return running_threads_ == 0 || failure_ != nullptr; });
    return running_threads_ == 0;
}

bool WorkerPool::has_failed() const {
    const std::lock_guard lock(mutex_);
    return failure_ != nullptr;
}

void WorkerPool::finish() {
    for (std::jthread& thread : threads_) thread.join();
    threads_.clear();
    if (failure_) std::rethrow_exception(failure_);
}

void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& work) {
    std::atomic<bool> stop{false};
    const auto helpers = static_cast<int>(std::min<std::int64_t>(threads, count)) - 1;
    WorkerPool pool(count, std::max(helpers, 0), work, stop);
    pool.run_tasks();
    pool.finish();
}

}  // namespace hpcai::data
