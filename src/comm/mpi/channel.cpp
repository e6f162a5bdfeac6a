// SPDX-License-Identifier: Apache-2.0
#include "channel.hpp"

#include <algorithm>
#include <iostream>
#include <thread>

#include <hpcai/base/clock.hpp>

namespace hpcai::comm {
namespace {

constexpr int kFailureTag = 32767;  // the highest tag that every MPI supports
constexpr int kTestsBeforeYield = 100;
constexpr double kFailureCheckSeconds = 0.02;
constexpr double kQuietShareOfWait = 1.0 / 60;  // share of wait_seconds until a wait is logged

std::string mpi_error_text(int code) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace

void check_mpi(int code, std::string_view call) {
    if (code == MPI_SUCCESS) return;
    throw Error(ExitCode::internal, fmt::format("{}: {}", call, mpi_error_text(code)));
}

Channel::Channel(MPI_Comm owned, const WorldLimits& limits, std::shared_ptr<KeptBuffers> kept)
    : handle_(owned), limits_(limits), kept_(std::move(kept)) {
    check_mpi(MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check_mpi(MPI_Comm_rank(handle_, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(handle_, &size_), "MPI_Comm_size");
}

Channel::~Channel() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    // After a failure, MPI would wait for operations that are still pending.
    if (finalized == 0 && !failure_) MPI_Comm_free(&handle_);
}

void Channel::check_usable() const {
    if (failure_) throw AnnouncedError(failure_->code(), failure_->what());
}

bool Channel::test(std::span<MPI_Request> requests) {
    check_usable();
    int complete = 0;
    const int code = MPI_Testall(static_cast<int>(requests.size()), requests.data(), &complete,
                                 MPI_STATUSES_IGNORE);
    if (code == MPI_SUCCESS) return complete != 0;
    fail(Error(ExitCode::watchdog,
               fmt::format("a rank cannot be reached: MPI_Testall: {}", mpi_error_text(code))));
}

void Channel::wait_until(const std::function<bool()>& is_done) {
    for (int tests = 0; tests < kTestsBeforeYield; ++tests) {
        if (is_done()) return;
    }
    const Stopwatch watch;
    Stopwatch since_check;
    // Only the first and the last rank log the wait, in case one of them is the missing rank.
    bool may_log = rank_ == 0 || rank_ == size_ - 1;
    while (!is_done()) {
        std::this_thread::yield();  // another process may need the core
        if (since_check.seconds() < kFailureCheckSeconds) continue;
        since_check.restart();
        check_for_failure();
        const double waited_seconds = watch.seconds();
        if (may_log && waited_seconds > kQuietShareOfWait * limits_.wait_seconds) {
            may_log = false;
            std::cerr << fmt::format(
                "hpcai500: rank {} of {} has waited {:.0f} s for the other ranks; the time limit "
                "is {:.0f} s\n",
                rank_, size_, waited_seconds, limits_.wait_seconds);
        }
        if (waited_seconds > limits_.wait_seconds) {
            fail(Error(ExitCode::watchdog,
                       fmt::format("rank {} of {}: the other ranks did not answer within {} s",
                                   rank_, size_, limits_.wait_seconds)));
        }
    }
}

void Channel::announce_failure(const Error& failure) noexcept {
    if (std::exchange(is_announced_, true) || size_ == 1) return;
    if (!failure_) failure_ = failure;
    const auto message = std::make_shared<FailureMessage>();
    message->code = failure.code();
    const std::string_view text(failure.what());
    std::ranges::copy(text.substr(0, message->text.size() - 1), message->text.begin());
    kept_->push_back(message);  // the receivers may be dead
    for (int rank = 0; rank < size_; ++rank) {
        if (rank == rank_) continue;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Isend(message.get(), sizeof(FailureMessage), MPI_BYTE, rank, kFailureTag, handle_,
                  &request);
        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
}

void Channel::check_for_failure() {
    check_usable();
    int found = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kFailureTag, handle_, &found, &status), "MPI_Iprobe");
    if (found == 0) {
        try {
            if (wait_callback_) wait_callback_();
        } catch (const Error& error) {
            fail(error);
        }
        return;
    }
    FailureMessage message;
    check_mpi(MPI_Recv(&message, sizeof(message), MPI_BYTE, status.MPI_SOURCE, kFailureTag, handle_,
                       MPI_STATUS_IGNORE),
              "MPI_Recv");
    message.text.back() = '\0';
    failure_ = Error(message.code, message.text.data());
    is_announced_ = true;  // the sender has announced it to all ranks
    check_usable();
}

void Channel::fail(const Error& failure) {
    failure_ = failure;
    throw failure;
}

}  // namespace hpcai::comm
