// SPDX-License-Identifier: Apache-2.0
#include "parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace hpcai::data {

namespace {

class Loop {
public:
    Loop(std::int64_t count, const std::function<void(std::int64_t)>& work)
        : count_(count), work_(work) {}

    void run() {
        while (!failed_) {
            const std::int64_t i = next_++;
            if (i >= count_) return;
            try {
                work_(i);
            } catch (...) {
                keep(i, std::current_exception());
            }
        }
    }
    void rethrow() const {
        if (failure_) std::rethrow_exception(failure_);
    }

private:
    void keep(std::int64_t i, std::exception_ptr failure) {
        const std::lock_guard lock(mutex_);
        failed_ = true;
        if (failure_ && i > failed_at_) return;
        failure_ = std::move(failure);
        failed_at_ = i;
    }

    const std::int64_t count_;
    const std::function<void(std::int64_t)>& work_;
    std::atomic<std::int64_t> next_{0};
    std::atomic<bool> failed_{false};
    std::mutex mutex_;
    std::exception_ptr failure_;
    std::int64_t failed_at_ = 0;
};

}  // namespace

void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& work) {
    Loop loop(count, work);
    {
        std::vector<std::jthread> helpers;
        for (std::int64_t i = 1; i < std::min<std::int64_t>(threads, count); ++i) {
            helpers.emplace_back([&loop] { loop.run(); });
        }
        loop.run();
    }
    loop.rethrow();
}

}  // namespace hpcai::data
