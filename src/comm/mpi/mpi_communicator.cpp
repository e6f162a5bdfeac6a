// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "channel.hpp"

namespace hpcai::comm {
namespace {

using Requests = std::vector<MPI_Request>;

constexpr int kAllGatherTag = 32766;              // only the tag of failures is higher
constexpr std::size_t kMaxCopiedSum = 64 * 1024;  // bytes; larger all-reduces run in place

/// The memory of an operation: the caller's memory, or a copy that KeptBuffers keeps on failure.
class Buffer {
public:
    /// Uses the caller's memory. The other constructor copies `input`.
    explicit Buffer(std::span<std::byte> values) : values_(values) {}
    Buffer(std::shared_ptr<Channel> channel, std::span<const std::byte> input)
        : channel_(std::move(channel)),
          copy_(std::make_shared<std::vector<std::byte>>(input.begin(), input.end())),
          values_(*copy_) {}
    ~Buffer() {
        if (copy_ && !complete_) channel_->kept()->push_back(copy_);
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    std::span<std::byte> bytes() const { return values_; }
    template <typename T>
    T* as() const {
        return reinterpret_cast<T*>(values_.data());
    }
    /// Call it when MPI no longer uses the memory.
    void complete() { complete_ = true; }
    void complete(std::span<std::byte> output) {
        complete_ = true;
        if (copy_) std::ranges::copy(values_.first(output.size()), output.begin());
    }

private:
    std::shared_ptr<Channel> channel_;
    std::shared_ptr<std::vector<std::byte>> copy_;
    std::span<std::byte> values_;
    bool complete_ = false;
};

class MpiRequest final : public Request {
public:
    MpiRequest(std::shared_ptr<Channel> channel, Requests requests)
        : channel_(std::move(channel)), requests_(std::move(requests)) {}
    ~MpiRequest() override {
        try {
            wait();
        } catch (const Error&) {
            // The next call on the communicator throws it again.
        }
    }
    bool test() override { return channel_->test(requests_); }
    void wait() override { channel_->wait(requests_); }

private:
    std::shared_ptr<Channel> channel_;
    Requests requests_;
};

/// Calls `operation(offset, int count, MPI_Request*)` for chunks of at most
/// WorldLimits::largest_count elements, because MPI counts are ints.
template <typename Operation>
Requests start_chunks(const Channel& channel, std::size_t elements, const char* call,
                      Operation operation) {
    channel.check_usable();
    Requests requests;
    for (std::size_t offset = 0; offset < elements;) {
        const std::size_t count = std::min(elements - offset, channel.limits().largest_count);
        requests.push_back(MPI_REQUEST_NULL);
        check_mpi(operation(offset, static_cast<int>(count), &requests.back()), call);
        offset += count;
    }
    return requests;
}

template <typename Operation>
void run_chunks(Channel& channel, std::size_t elements, const char* call, Operation operation) {
    Requests requests = start_chunks(channel, elements, call, operation);
    channel.wait(requests);
}

Requests start_send(const Channel& channel, std::span<const std::byte> bytes, int rank, int tag) {
    return start_chunks(channel, bytes.size(), "MPI_Isend",
                        [&](std::size_t offset, int count, MPI_Request* request) {
                            return MPI_Isend(bytes.data() + offset, count, MPI_BYTE, rank, tag,
                                             channel.handle(), request);
                        });
}

Requests start_receive(const Channel& channel, std::span<std::byte> bytes, int rank, int tag) {
    return start_chunks(channel, bytes.size(), "MPI_Irecv",
                        [&](std::size_t offset, int count, MPI_Request* request) {
                            return MPI_Irecv(bytes.data() + offset, count, MPI_BYTE, rank, tag,
                                             channel.handle(), request);
                        });
}

template <typename T>
void all_reduce(const std::shared_ptr<Channel>& channel, std::span<T> values, MPI_Datatype type,
                MPI_Op operation) {
    channel->check_usable();
    if (channel->size() == 1) return;
    const std::span<std::byte> bytes = std::as_writable_bytes(values);
    Buffer buffer = bytes.size() <= kMaxCopiedSum ? Buffer(channel, bytes) : Buffer(bytes);
    run_chunks(*channel, values.size(), "MPI_Iallreduce",
               [&](std::size_t offset, int count, MPI_Request* request) {
                   return MPI_Iallreduce(MPI_IN_PLACE, buffer.as<T>() + offset, count, type,
                                         operation, channel->handle(), request);
               });
    buffer.complete(bytes);
}

/// A Communicator over MPI. Except in split(), it uses non-blocking MPI operations and waits with
/// the channel's deadline, because a blocking collective with a dead rank would never return.
class MpiCommunicator final : public Communicator {
public:
    explicit MpiCommunicator(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}

    int rank() const override { return channel_->rank(); }
    int size() const override { return channel_->size(); }

    void all_reduce_sum(std::span<float> values) override {
        all_reduce(channel_, values, MPI_FLOAT, MPI_SUM);
    }
    void all_reduce_sum(std::span<double> values) override {
        all_reduce(channel_, values, MPI_DOUBLE, MPI_SUM);
    }
    void all_reduce_sum(std::span<std::int64_t> values) override {
        all_reduce(channel_, values, MPI_INT64_T, MPI_SUM);
    }
    void all_reduce_max(std::span<double> values) override {
        all_reduce(channel_, values, MPI_DOUBLE, MPI_MAX);
    }

    /// Does not use MPI_IN_PLACE, with which Open MPI 4.1 and 5.0 sum in a binomial tree, where
    /// each message has all values (ompi/mca/coll/libnbc/nbc_iallreduce.c).
    std::unique_ptr<Request> start_all_reduce_sum(std::span<const float> values,
                                                  std::span<float> sums) override {
        return std::make_unique<MpiRequest>(
            channel_, start_chunks(*channel_, values.size(), "MPI_Iallreduce",
                                   [&](std::size_t offset, int count, MPI_Request* request) {
                                       return MPI_Iallreduce(values.data() + offset,
                                                             sums.data() + offset, count, MPI_FLOAT,
                                                             MPI_SUM, channel_->handle(), request);
                                   }));
    }

    void reduce_sum(std::span<float> values, int root) override {
        if (size() == 1) return;
        Buffer buffer(channel_, std::as_bytes(values));
        run_chunks(*channel_, values.size(), "MPI_Ireduce",
                   [&](std::size_t offset, int count, MPI_Request* request) {
                       float* chunk = buffer.as<float>() + offset;
                       const bool is_root = rank() == root;
                       return MPI_Ireduce(is_root ? MPI_IN_PLACE : chunk, is_root ? chunk : nullptr,
                                          count, MPI_FLOAT, MPI_SUM, root, channel_->handle(),
                                          request);
                   });
        if (rank() == root) return buffer.complete(std::as_writable_bytes(values));
        buffer.complete();
    }

    void broadcast(std::span<std::byte> bytes, int root) override {
        Buffer buffer(channel_, bytes);
        run_chunks(*channel_, bytes.size(), "MPI_Ibcast",
                   [&](std::size_t offset, int count, MPI_Request* request) {
                       return MPI_Ibcast(buffer.as<std::byte>() + offset, count, MPI_BYTE, root,
                                         channel_->handle(), request);
                   });
        buffer.complete(bytes);
    }

    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
        ensure(all.size() == mine.size() * static_cast<std::size_t>(size()),
               "all_gather: {} bytes of each of {} ranks do not fill {} bytes", mine.size(), size(),
               all.size());
        // Bruck et al. 1997, in log2(size()) rounds. With MPI_Iallgather of Open MPI 4.1 and 5.0,
        // each rank would send size() - 1 messages.
        Buffer buffer(channel_, all);
        const std::span<std::byte> slots = buffer.bytes();  // one per rank, from this rank on
        std::ranges::copy(mine, slots.begin());
        const auto block = mine.size();
        for (int filled = 1; filled < size(); filled *= 2) {
            const std::size_t bytes = block * std::min(filled, size() - filled);
            const Outgoing sent{(rank() - filled + size()) % size(), slots.first(bytes)};
            const Incoming received{(rank() + filled) % size(),
                                    slots.subspan(block * filled, bytes)};
            start_exchange({&sent, 1}, {&received, 1}, kAllGatherTag)->wait();
        }
        std::ranges::rotate(slots, slots.end() - static_cast<std::ptrdiff_t>(block * rank()));
        buffer.complete(all);
    }

    void send(std::span<const std::byte> bytes, int destination, int tag) override {
        Buffer buffer(channel_, bytes);
        Requests requests = start_send(*channel_, buffer.bytes(), destination, tag);
        channel_->wait(requests);
        buffer.complete();
    }

    void receive(std::span<std::byte> bytes, int source, int tag) override {
        Buffer buffer(channel_, bytes);
        Requests requests = start_receive(*channel_, buffer.bytes(), source, tag);
        channel_->wait(requests);
        buffer.complete(bytes);
    }

    std::unique_ptr<Request> start_exchange(std::span<const Outgoing> sends,
                                            std::span<const Incoming> receives, int tag) override {
        Requests requests;
        const auto add = [&](const Requests& more) {
            requests.insert(requests.end(), more.begin(), more.end());
        };
        for (const auto& [rank, bytes] : receives) add(start_receive(*channel_, bytes, rank, tag));
        for (const auto& [rank, bytes] : sends) add(start_send(*channel_, bytes, rank, tag));
        return std::make_unique<MpiRequest>(channel_, std::move(requests));
    }

    void barrier() override {
        channel_->check_usable();
        Requests requests(1, MPI_REQUEST_NULL);
        check_mpi(MPI_Ibarrier(channel_->handle(), requests.data()), "MPI_Ibarrier");
        channel_->wait(requests);
    }

    std::unique_ptr<Communicator> split(int color, int key) override {
        barrier();  // detects a missing rank, for which MPI_Comm_split would wait forever
        MPI_Comm created = MPI_COMM_NULL;
        check_mpi(MPI_Comm_split(channel_->handle(), color, key, &created), "MPI_Comm_split");
        return make_mpi_communicator(created, channel_->limits(), channel_->kept());
    }

    void wait_until(const std::function<bool()>& is_done) override {
        channel_->check_usable();
        channel_->wait_until(is_done);
    }
    void announce_failure(const Error& failure) noexcept override {
        channel_->announce_failure(failure);
    }
    void check_for_failure() override { channel_->check_for_failure(); }
    void set_wait_callback(std::function<void()> callback) override {
        channel_->set_wait_callback(std::move(callback));
    }
    void keep_alive(std::shared_ptr<const void> buffer) override {
        channel_->kept()->push_back(std::move(buffer));
    }

private:
    std::shared_ptr<Channel> channel_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(MPI_Comm owned, const WorldLimits& limits,
                                                    std::shared_ptr<KeptBuffers> kept) {
    return std::make_unique<MpiCommunicator>(
        std::make_shared<Channel>(owned, limits, std::move(kept)));
}

}  // namespace hpcai::comm
