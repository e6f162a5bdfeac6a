// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hpcai::data {

/// Fills batches row by row with its own threads, a bounded number of batches ahead. The caller
/// owns the memory: batch b is in slot b % slots.
class Prefetcher {
public:
    /// Writes row `row` of batch `batch` into `slot`. Called concurrently, once for each row; for
    /// an exception, see next().
    using Fill = std::function<void(int slot, std::int64_t batch, std::int64_t row)>;
    /// Called once for a batch when all its rows are written without an exception; next() waits for
    /// it and rethrows its exceptions.
    using Complete = std::function<void(int slot, std::int64_t batch)>;

    /// The caller uses one of `slots` >= 2; the others are filled ahead. `threads` >= 1.
    Prefetcher(int slots, int threads, Fill fill, Complete complete = nullptr);
    /// Waits for all threads to end.
    ~Prefetcher();

    /// Aborts the work in progress. Returns when no thread is inside Fill or Complete.
    void cancel();
    /// Starts batches `first` to `batches` - 1 of `rows` rows each. No batch may be in progress.
    void begin(std::int64_t batches, std::int64_t rows, std::int64_t first = 0);
    /// Waits for the next batch and returns its slot, which stays valid until the next call.
    /// Rethrows the exception of the first failed row. Throws Error(internal) after the last batch.
    int next();

    std::int64_t batches() const { return batches_; }
    /// Returns the seconds that calls of next() have taken since construction.
    double wait_seconds() const { return wait_seconds_; }

private:
    struct Slot {
        std::int64_t ready_batch = -1;
        std::int64_t rows_left = 0;
        std::int64_t failed_row = 0;
        std::exception_ptr failure;
    };

    void run_thread(const std::stop_token& stop);
    bool has_work() const;
    void finish_row(Slot& slot, std::int64_t batch, std::int64_t row, std::exception_ptr failure);

    const Fill fill_;
    const Complete complete_;
    std::mutex mutex_;
    std::condition_variable_any work_available_;
    std::condition_variable row_done_;
    std::vector<Slot> slots_;
    std::int64_t batches_ = 0;
    std::int64_t rows_ = 1;
    std::int64_t next_row_ = 0;           // first row not assigned to a thread, over all batches
    std::int64_t delivered_batches_ = 0;  // returned by next()
    std::int64_t released_batches_ = 0;   // whose slots may be filled again
    int filling_threads_ = 0;             // inside Fill or Complete
    double wait_seconds_ = 0;
    std::vector<std::jthread> threads_;  // last member, because they use all others
};

}  // namespace hpcai::data
