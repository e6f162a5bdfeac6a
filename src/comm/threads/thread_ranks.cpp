// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <hpcai/comm/communicator.hpp>

namespace hpcai::comm {
namespace {

using Bytes = std::span<const std::byte>;

class SharedState {
public:
    explicit SharedState(int ranks) : posted_(static_cast<std::size_t>(ranks)) {}

    int size() const { return static_cast<int>(posted_.size()); }

    /// Publishes `mine`, waits for all ranks, calls `read` and waits until `read` has returned on
    /// all ranks. Buffers must not change until then.
    template <typename Read>
    void run_between_barriers(int rank, Bytes mine, const Read& read) {
        posted_[rank] = mine;
        wait_for_all();
        read();
        wait_for_all();
    }
    Bytes posted(int rank) const { return posted_[rank]; }

    void send(int from, int to, int tag, Bytes bytes) {
        const std::lock_guard lock(mutex_);
        mailboxes_[{from, to, tag}].emplace_back(bytes.begin(), bytes.end());
        changed_.notify_all();
    }
    bool try_receive(int from, int to, int tag, std::span<std::byte> bytes) {
        const std::lock_guard lock(mutex_);
        throw_failure();
        const auto box = mailboxes_.find({from, to, tag});
        if (box == mailboxes_.end() || box->second.empty()) return false;
        const std::vector<std::byte> message = std::move(box->second.front());
        box->second.pop_front();
        ensure(message.size() == bytes.size(), "received a message of {} bytes, expected {}",
               message.size(), bytes.size());
        std::ranges::copy(message, bytes.begin());
        return true;
    }
    /// Waits at most 1 ms for a message or a failure.
    void wait_briefly() {
        std::unique_lock lock(mutex_);
        throw_failure();
        changed_.wait_for(lock, std::chrono::milliseconds(1));
    }

    void fail(const Error& failure) noexcept {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = failure;
        for (const auto& [color, state] : subsets_) state->fail(failure);
        changed_.notify_all();
    }
    void check_for_failure() {
        const std::lock_guard lock(mutex_);
        throw_failure();
    }

    /// Returns the state that the ranks of a color in a split share; the first caller makes it.
    std::shared_ptr<SharedState> subset(int split, int color, int ranks) {
        const std::lock_guard lock(mutex_);
        throw_failure();
        std::shared_ptr<SharedState>& state = subsets_[{split, color}];
        if (state == nullptr) state = std::make_shared<SharedState>(ranks);
        return state;
    }

private:
    void wait_for_all() {
        std::unique_lock lock(mutex_);
        throw_failure();
        const std::uint64_t barrier = barriers_;
        if (++arrived_ == size()) {
            arrived_ = 0;
            ++barriers_;
            changed_.notify_all();
            return;
        }
        changed_.wait(lock, [&] { return barriers_ != barrier || failure_; });
        if (barriers_ == barrier) throw_failure();
    }
    void throw_failure() const {
        if (failure_) throw Error(*failure_);
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Bytes> posted_;  // by rank
    int arrived_ = 0;
    std::uint64_t barriers_ = 0;
    std::map<std::tuple<int, int, int>, std::deque<std::vector<std::byte>>> mailboxes_;
    std::map<std::pair<int, int>, std::shared_ptr<SharedState>> subsets_;  // by split and color
    std::optional<Error> failure_;
};

/// The messages that a rank has yet to receive. Sent messages are delivered at once.
class PendingReceives final : public Request {
public:
    PendingReceives(std::shared_ptr<SharedState> state, int rank, int tag,
                    std::span<const Incoming> all)
        : state_(std::move(state)), rank_(rank), tag_(tag), pending_(all.begin(), all.end()) {}
    PendingReceives(const PendingReceives&) = delete;
    PendingReceives& operator=(const PendingReceives&) = delete;
    ~PendingReceives() override {
        try {
            wait();
        } catch (const Error&) {
            // Another rank has failed, so the messages will not arrive.
        }
    }

    bool test() override {
        while (!pending_.empty() &&
               state_->try_receive(pending_.front().rank, rank_, tag_, pending_.front().bytes)) {
            pending_.pop_front();
        }
        return pending_.empty();
    }
    void wait() override {
        while (!test()) state_->wait_briefly();
    }

private:
    std::shared_ptr<SharedState> state_;
    int rank_, tag_;
    std::deque<Incoming> pending_;
};

class ThreadCommunicator final : public Communicator {
public:
    ThreadCommunicator(std::shared_ptr<SharedState> state, int rank)
        : state_(std::move(state)), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return state_->size(); }

    void all_reduce_sum(std::span<float> values) override { reduce(values, Sum(), kAll); }
    void all_reduce_sum(std::span<double> values) override { reduce(values, Sum(), kAll); }
    void all_reduce_sum(std::span<std::int64_t> values) override { reduce(values, Sum(), kAll); }
    void all_reduce_max(std::span<double> values) override {
        reduce(
            values, [](double a, double b) { return std::max(a, b); }, kAll);
    }
    void reduce_sum(std::span<float> values, int root) override {
        check_rank(root);
        reduce(values, Sum(), root);
    }

    void broadcast(std::span<std::byte> bytes, int root) override {
        check_rank(root);
        state_->run_between_barriers(rank_, bytes, [&] {
            const Bytes from = state_->posted(root);
            ensure(from.size() == bytes.size(), "broadcast: the root sends {} bytes, expected {}",
                   from.size(), bytes.size());
            if (rank_ != root) std::ranges::copy(from, bytes.begin());
        });
    }

    void all_gather(Bytes mine, std::span<std::byte> all) override {
        state_->run_between_barriers(rank_, mine, [&] {
            ensure(all.size() == mine.size() * static_cast<std::size_t>(size()),
                   "all_gather: {} bytes of each of {} ranks do not fill {} bytes", mine.size(),
                   size(), all.size());
            auto next = all.begin();
            for (int from = 0; from < size(); ++from) {
                check_size(state_->posted(from), mine.size());
                next = std::ranges::copy(state_->posted(from), next).out;
            }
        });
    }

    void send(Bytes bytes, int destination, int tag) override {
        check_peer(destination);
        state_->send(rank_, destination, tag, bytes);
    }
    void receive(std::span<std::byte> bytes, int source, int tag) override {
        check_peer(source);
        while (!state_->try_receive(source, rank_, tag, bytes)) state_->wait_briefly();
    }
    std::unique_ptr<Request> start_exchange(std::span<const Outgoing> sends,
                                            std::span<const Incoming> receives, int tag) override {
        for (const Incoming& message : receives) check_peer(message.rank);
        for (const Outgoing& message : sends) send(message.bytes, message.rank, tag);
        return std::make_unique<PendingReceives>(state_, rank_, tag, receives);
    }
    void wait_until(const std::function<bool()>& is_done) override {
        while (!is_done()) state_->wait_briefly();
    }

    void barrier() override {
        state_->run_between_barriers(rank_, {}, [] {});
    }

    std::unique_ptr<Communicator> split(int color, int key) override {
        std::vector<std::pair<int, int>> mine{{color, key}};
        std::vector<std::pair<int, int>> all(static_cast<std::size_t>(size()));  // by rank
        all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
        int new_rank = 0;
        int ranks = 0;
        for (int other = 0; other < size(); ++other) {
            const auto& [other_color, other_key] = all[other];
            if (other_color != color) continue;
            ++ranks;
            new_rank += std::pair(other_key, other) < std::pair(key, rank_) ? 1 : 0;
        }
        return std::make_unique<ThreadCommunicator>(state_->subset(splits_++, color, ranks),
                                                    new_rank);
    }

    void announce_failure(const Error& failure) noexcept override {
        if (size() > 1) state_->fail(failure);  // a single rank has no others to notify
    }
    void check_for_failure() override { state_->check_for_failure(); }

private:
    using Sum = std::plus<>;
    static constexpr int kAll = -1;  // as the root: all ranks get the result

    void check_rank(int rank) const {
        ensure(rank >= 0 && rank < size(), "there is no rank {} among {} ranks", rank, size());
    }
    void check_peer(int rank) const {
        check_rank(rank);
        ensure(rank != rank_, "rank {} sends a message to itself", rank);
    }
    static void check_size(Bytes posted, std::size_t expected_bytes) {
        ensure(posted.size() == expected_bytes, "the ranks pass {} and {} bytes", posted.size(),
               expected_bytes);
    }

    template <typename T, typename Combine>
    void reduce(std::span<T> values, const Combine& combine, int root) {
        std::vector<T> result;
        state_->run_between_barriers(rank_, std::as_bytes(values), [&] {
            if (root != kAll && root != rank_) return;
            result.resize(values.size());
            for (int from = 0; from < size(); ++from) {
                check_size(state_->posted(from), values.size_bytes());
                const auto* const theirs = reinterpret_cast<const T*>(state_->posted(from).data());
                for (std::size_t i = 0; i < values.size(); ++i) {
                    result[i] = from == 0 ? theirs[i] : combine(result[i], theirs[i]);
                }
            }
        });
        std::ranges::copy(result, values.begin());
    }

    std::shared_ptr<SharedState> state_;
    int rank_;
    int splits_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator() {
    return std::make_unique<ThreadCommunicator>(std::make_shared<SharedState>(1), 0);
}

void run_as_threads(int ranks, const std::function<void(Communicator&)>& body) {
    ensure(ranks > 0, "expected at least one rank, got {}", ranks);
    const auto state = std::make_shared<SharedState>(ranks);
    std::mutex mutex;
    std::exception_ptr failure;
    const auto fail = [&](const Error& error) {
        {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
        }
        state->fail(error);
    };
    {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < ranks; ++rank) {
            threads.emplace_back([&, rank] {
                try {
                    ThreadCommunicator mine(state, rank);
                    body(mine);
                } catch (const std::exception& error) {
                    fail(to_error(error));
                }
            });
        }
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace hpcai::comm
