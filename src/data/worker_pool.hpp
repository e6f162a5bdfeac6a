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

/// Threads that do numbered pieces of work while the owner does something else.
class WorkerPool {
public:
    /// Calls work(i) once for every i < count, from `threads` threads. No call starts after an
    /// exception or when `stop` is set. `stop` must outlive the pool. Throws std::system_error when
    /// the threads cannot be started.
    WorkerPool(std::int64_t count, int threads, std::function<void(std::int64_t)> work,
               std::atomic<bool>& stop);
    /// Stops the work and waits for the threads.
    ~WorkerPool();
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    /// Does pieces of work in the calling thread until none is left.
    void help();
    /// Waits, at most `longest`, until all pieces are done or one has failed. Returns whether all
    /// threads are done.
    bool wait(std::chrono::milliseconds longest);
    bool has_failed() const;
    /// Waits for all threads and rethrows the exception of the failed piece with the lowest number.
    void finish();

private:
    void keep(std::int64_t piece, std::exception_ptr failure);

    const std::int64_t count_;
    const std::function<void(std::int64_t)> work_;
    std::atomic<bool>& stop_;
    std::atomic<std::int64_t> next_{0};
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    int at_work_;
    std::exception_ptr failure_;
    std::int64_t failed_piece_ = 0;
    std::vector<std::jthread> threads_;  // last, as they use all of the above
};

/// Calls work(i) once for every i < count from `threads` threads and returns when all are done. No
/// call starts after an exception. Rethrows the exception of the lowest i.
void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& work);

}  // namespace hpcai::data
