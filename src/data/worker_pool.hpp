// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hpcai::data {

/// Threads that run numbered tasks concurrently with the owner.
class WorkerPool {
public:
    /// Calls work(i) once for every i < count, from `threads` threads. No call starts after an
    /// exception or after `stop` was set. `stop` must outlive the pool. Throws std::system_error if
    /// the threads cannot be started.
    WorkerPool(std::int64_t count, int threads, std::function<void(std::int64_t)> work,
               std::atomic<bool>& stop);
    /// Sets `stop` and waits for the threads.
    ~WorkerPool();

    /// Runs tasks in the calling thread until none is left or `stop` is set.
    void run_tasks();
    /// Waits, at most `timeout`, until all threads are done or a task has failed. Returns whether
    /// all threads are done.
    bool wait(std::chrono::milliseconds timeout);
    bool has_failed() const;
    /// Waits for all threads and rethrows the exception of the failed task with the lowest number.
    void finish();

private:
    const std::int64_t count_;
    const std::function<void(std::int64_t)> work_;
    std::atomic<bool>& stop_;
    std::atomic<std::int64_t> next_{0};
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    int running_threads_;
    std::exception_ptr failure_;
    std::int64_t failed_task_ = 0;
    std::vector<std::jthread> threads_;  // last member, because they use all others
};

/// Calls work(i) once for every i < count from up to `threads` threads, including the calling one,
/// and waits for them. After an exception, starts no more calls and rethrows that of the lowest i.
void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& work);

}  // namespace hpcai::data
