// SPDX-License-Identifier: Apache-2.0
#include "mpi_communicator.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace hpcai::comm {

namespace {

using Requests = std::vector<MPI_Request>;

class MpiRequest final : public Request {
public:
    MpiRequest(std::shared_ptr<Channel> channel, Requests requests)
        : channel_(std::move(channel)), requests_(std::move(requests)) {}
    ~MpiRequest() override {
        try {
            channel_->wait(requests_);
        } catch (const Error&) {
            // Whoever uses the communicator next gets it again.
        }
    }
    bool test() override { return channel_->test(requests_); }
    void wait() override { channel_->wait(requests_); }

private:
    std::shared_ptr<Channel> channel_;
    Requests requests_;
};

/// Issues `operation(offset, int count, MPI_Request*)` for parts of at most the channel's largest
/// count, since MPI counts are ints.
template <typename Operation>
Requests in_parts(const Channel& channel, std::size_t elements, const char* call,
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

template <typename T>
Requests start_all_reduce(const Channel& channel, std::span<T> values, MPI_Datatype type,
                          MPI_Op operation) {
    if (channel.size() == 1) return {};
    return in_parts(channel, values.size(), "MPI_Iallreduce",
                    [&](std::size_t offset, int count, MPI_Request* request) {
                        return MPI_Iallreduce(MPI_IN_PLACE, values.data() + offset, count, type,
                                              operation, channel.handle(), request);
                    });
}

template <typename T>
void all_reduce(Channel& channel, std::span<T> values, MPI_Datatype type, MPI_Op operation) {
    Requests requests = start_all_reduce(channel, values, type, operation);
    channel.wait(requests);
}

/// `count` bytes that repeat every `stride` bytes: a part of each rank's place in a gathered array.
class StridedBytes {
public:
    StridedBytes(int count, std::size_t stride) {
        MPI_Datatype bytes = MPI_DATATYPE_NULL;
        check_mpi(MPI_Type_contiguous(count, MPI_BYTE, &bytes), "MPI_Type_contiguous");
        const int code = MPI_Type_create_resized(bytes, 0, static_cast<MPI_Aint>(stride), &handle_);
        MPI_Type_free(&bytes);
        check_mpi(code, "MPI_Type_create_resized");
        check_mpi(MPI_Type_commit(&handle_), "MPI_Type_commit");
    }
    ~StridedBytes() { MPI_Type_free(&handle_); }
    StridedBytes(const StridedBytes&) = delete;
    StridedBytes& operator=(const StridedBytes&) = delete;
    MPI_Datatype handle() const { return handle_; }

private:
    MPI_Datatype handle_ = MPI_DATATYPE_NULL;
};

}  // namespace

MpiCommunicator::MpiCommunicator(MPI_Comm owned, const WorldLimits& limits)
    : channel_(std::make_shared<Channel>(owned, limits)) {}

void MpiCommunicator::all_reduce_sum(std::span<float> values) {
    all_reduce(*channel_, values, MPI_FLOAT, MPI_SUM);
}

void MpiCommunicator::all_reduce_sum(std::span<double> values) {
    all_reduce(*channel_, values, MPI_DOUBLE, MPI_SUM);
}

void MpiCommunicator::all_reduce_sum(std::span<std::int64_t> values) {
    all_reduce(*channel_, values, MPI_INT64_T, MPI_SUM);
}

void MpiCommunicator::all_reduce_max(std::span<double> values) {
    all_reduce(*channel_, values, MPI_DOUBLE, MPI_MAX);
}

std::unique_ptr<Request> MpiCommunicator::start_all_reduce_sum(std::span<float> values) {
    return std::make_unique<MpiRequest>(channel_,
                                        start_all_reduce(*channel_, values, MPI_FLOAT, MPI_SUM));
}

void MpiCommunicator::reduce_sum(std::span<float> values, int root) {
    if (size() == 1) return;
    Requests requests =
        in_parts(*channel_, values.size(), "MPI_Ireduce",
                 [&](std::size_t offset, int count, MPI_Request* request) {
                     float* part = values.data() + offset;
                     return rank() == root ? MPI_Ireduce(MPI_IN_PLACE, part, count, MPI_FLOAT,
                                                         MPI_SUM, root, channel_->handle(), request)
                                           : MPI_Ireduce(part, nullptr, count, MPI_FLOAT, MPI_SUM,
                                                         root, channel_->handle(), request);
                 });
    channel_->wait(requests);
}

void MpiCommunicator::broadcast(std::span<std::byte> bytes, int root) {
    Requests requests = in_parts(*channel_, bytes.size(), "MPI_Ibcast",
                                 [&](std::size_t offset, int count, MPI_Request* request) {
                                     return MPI_Ibcast(bytes.data() + offset, count, MPI_BYTE, root,
                                                       channel_->handle(), request);
                                 });
    channel_->wait(requests);
}

void MpiCommunicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
    ensure(all.size() == mine.size() * static_cast<std::size_t>(size()),
           "all_gather: {} bytes of each of {} ranks into {} bytes", mine.size(), size(),
           all.size());
    Requests requests = in_parts(*channel_, mine.size(), "MPI_Iallgather",
                                 [&](std::size_t offset, int count, MPI_Request* request) {
                                     const StridedBytes part(count, mine.size());
                                     return MPI_Iallgather(mine.data() + offset, count, MPI_BYTE,
                                                           all.data() + offset, 1, part.handle(),
                                                           channel_->handle(), request);
                                 });
    channel_->wait(requests);
}

void MpiCommunicator::reduce_scatter_sum(std::span<const float> all, std::span<float> mine) {
    ensure(all.size() == mine.size() * static_cast<std::size_t>(size()),
           "reduce_scatter_sum: {} values for {} of each of {} ranks", all.size(), mine.size(),
           size());
    Requests requests;
    if (all.size() <= channel_->limits().largest_count) {
        requests =
            in_parts(*channel_, mine.size(), "MPI_Ireduce_scatter_block",
                     [&](std::size_t, int count, MPI_Request* request) {
                         return MPI_Ireduce_scatter_block(all.data(), mine.data(), count, MPI_FLOAT,
                                                          MPI_SUM, channel_->handle(), request);
                     });
        return channel_->wait(requests);
    }
    for (int root = 0; root < size(); ++root) {
        const float* part = all.data() + static_cast<std::size_t>(root) * mine.size();
        requests =
            in_parts(*channel_, mine.size(), "MPI_Ireduce",
                     [&](std::size_t offset, int count, MPI_Request* request) {
                         return MPI_Ireduce(part + offset, mine.data() + offset, count, MPI_FLOAT,
                                            MPI_SUM, root, channel_->handle(), request);
                     });
        channel_->wait(requests);
    }
}

void MpiCommunicator::send(std::span<const std::byte> bytes, int destination, int tag) {
    Requests requests =
        in_parts(*channel_, bytes.size(), "MPI_Isend",
                 [&](std::size_t offset, int count, MPI_Request* request) {
                     return MPI_Isend(bytes.data() + offset, count, MPI_BYTE, destination, tag,
                                      channel_->handle(), request);
                 });
    channel_->wait(requests);
}

void MpiCommunicator::receive(std::span<std::byte> bytes, int source, int tag) {
    Requests requests = in_parts(*channel_, bytes.size(), "MPI_Irecv",
                                 [&](std::size_t offset, int count, MPI_Request* request) {
                                     return MPI_Irecv(bytes.data() + offset, count, MPI_BYTE,
                                                      source, tag, channel_->handle(), request);
                                 });
    channel_->wait(requests);
}

void MpiCommunicator::barrier() {
    channel_->check_usable();
    Requests requests(1, MPI_REQUEST_NULL);
    check_mpi(MPI_Ibarrier(channel_->handle(), requests.data()), "MPI_Ibarrier");
    channel_->wait(requests);
}

std::unique_ptr<Communicator> MpiCommunicator::split(int color, int key) {
    barrier();  // A rank that does not come is noticed here, while a split would wait for ever.
    MPI_Comm part = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split(channel_->handle(), color, key, &part), "MPI_Comm_split");
    return std::make_unique<MpiCommunicator>(part, channel_->limits());
}

void MpiCommunicator::announce_failure(const Error& failure) noexcept {
    channel_->announce_failure(failure);
}

}  // namespace hpcai::comm
