// SPDX-License-Identifier: Apache-2.0
// The parts of NCCL that this project uses, between processes of MPI_COMM_WORLD whose GPUs
// tests/simt emulates. Work runs in its stream; a rank that never joins it causes a failure of the
// device.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include <mpi.h>
#include <nccl.h>

#include "nccl_failures.hpp"
#include "simt/runtime.hpp"
#include "simt/streams.hpp"

namespace {

constexpr int kFirstTag = 20000;
constexpr std::chrono::seconds kMaxWait{60};

/// The data that an ncclUniqueId refers to.
struct Meeting {
    int root = 0;  // in MPI_COMM_WORLD
    int tag = 0;
};

struct Ranks {
    int rank = 0;
    int tag = 0;
    std::vector<int> in_world;
    std::atomic<bool> is_aborted = false;
    int steps_to_settle = 0;  // number of further queries that report an unfinished start

    int size() const { return static_cast<int>(in_world.size()); }
};

struct Message {
    std::shared_ptr<Ranks> ranks;
    cudaStream_t stream = nullptr;
    void* bytes = nullptr;
    std::size_t count = 0;
    int peer = 0;
    bool is_send = false;
};

/// Messages in progress. A query of a stream's progress does not wait for them.
class Exchange {
public:
    explicit Exchange(std::vector<Message> messages) : messages_(std::move(messages)) {}

    void run() {
        if (messages_.empty()) return;
        if (requests_.empty()) begin();
        const std::vector<MPI_Status> statuses = complete();
        for (std::size_t i = 0; i < messages_.size(); ++i) {
            int count = 0;
            MPI_Get_count(&statuses[i], MPI_BYTE, &count);
            if (!messages_[i].is_send && static_cast<std::size_t>(count) != messages_[i].count) {
                throw std::runtime_error("NCCL got a message of another length");
            }
            if (!messages_[i].is_send) {
                std::memcpy(messages_[i].bytes, (*letters_)[i].data(), messages_[i].count);
            }
        }
    }

private:
    void begin() {
        end_ = std::chrono::steady_clock::now() + kMaxWait;
        for (const Message& one : messages_) {
            const int world_rank = one.ranks->in_world[static_cast<std::size_t>(one.peer)];
            const auto count = static_cast<int>(one.count);
            MPI_Request& request = requests_.emplace_back();
            const auto* from = static_cast<const std::byte*>(one.bytes);
            std::vector<std::byte>& letter =
                letters_->emplace_back(one.is_send ? std::vector(from, from + one.count)
                                                   : std::vector<std::byte>(one.count));
            if (one.is_send) {
                MPI_Isend(letter.data(), count, MPI_BYTE, world_rank, one.ranks->tag,
                          MPI_COMM_WORLD, &request);
            } else {
                MPI_Irecv(letter.data(), count, MPI_BYTE, world_rank, one.ranks->tag,
                          MPI_COMM_WORLD, &request);
            }
        }
    }

    std::vector<MPI_Status> complete() {
        std::vector<MPI_Status> statuses(requests_.size());
        for (int done = 0;;) {
            MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                        statuses.data());
            if (done != 0) return statuses;
            if (messages_.front().ranks->is_aborted) {
                static_cast<void>(letters_.release());  // they may still arrive
                throw std::runtime_error("NCCL's work was aborted");
            }
            if (std::chrono::steady_clock::now() > end_) {
                throw std::runtime_error("NCCL's work waited too long for another rank");
            }
            if (hpcai::simt::is_query()) throw hpcai::simt::NotYet{};
        }
    }

    std::vector<Message> messages_;
    std::vector<MPI_Request> requests_;
    // MPI transfers them while the device's memory must not be accessed.
    std::unique_ptr<std::vector<std::vector<std::byte>>> letters_ =
        std::make_unique<std::vector<std::vector<std::byte>>>();
    std::chrono::steady_clock::time_point end_;
};

/// All ranks send their values to all ranks, which add them in the order of ranks.
class SumOfAll {
public:
    SumOfAll(const std::shared_ptr<Ranks>& ranks, std::span<float> values)
        : values_(values),
          mine_(values.begin(), values.end()),
          all_(ranks->in_world.size(), mine_),
          exchange_(messages(ranks)) {}

    void run() {
        exchange_.run();
        for (std::size_t i = 0; i < values_.size(); ++i) {
            values_[i] =
                std::accumulate(all_.begin(), all_.end(), 0.0F,
                                [i](float so_far, const auto& one) { return so_far + one[i]; });
        }
    }

private:
    std::vector<Message> messages(const std::shared_ptr<Ranks>& ranks) {
        std::vector<Message> messages;
        for (int peer = 0; peer < ranks->size(); ++peer) {
            if (peer == ranks->rank) continue;
            Message message{ranks, nullptr, mine_.data(), values_.size_bytes(), peer, true};
            messages.push_back(message);
            message.is_send = false;
            message.bytes = all_[static_cast<std::size_t>(peer)].data();
            messages.push_back(message);
        }
        return messages;
    }

    std::span<float> values_;
    std::vector<float> mine_;
    std::vector<std::vector<float>> all_;
    Exchange exchange_;
};

/// Starts a piece of work in its stream and continues it until it is complete; a recording does so
/// in each run.
template <typename Make>
void enqueue_work(cudaStream_t stream, Make make) {
    hpcai::simt::enqueue(stream, [make, under_way = decltype(make())()]() mutable {
        if (!under_way) under_way = make();
        under_way->run();
        under_way.reset();
    });
}

std::optional<hpcai::tests::NcclCall> next_failure;

bool fails(hpcai::tests::NcclCall call) {
    if (next_failure != call) return false;
    next_failure.reset();
    return true;
}

/// The calls of a thread since ncclGroupStart.
struct OpenGroup {
    int depth = 0;
    std::vector<Message> messages;
};
thread_local OpenGroup open_group;

ncclResult_t close_group() {
    std::vector<Message> messages = std::exchange(open_group.messages, {});
    if (messages.empty()) return ncclSuccess;
    if (fails(hpcai::tests::NcclCall::group_end)) return ncclSystemError;
    const cudaStream_t stream = messages.front().stream;
    const auto& memory = hpcai::simt::Runtime::instance().memory;
    for (const Message& one : messages) {
        if (one.stream != stream || one.count == 0 || one.peer == one.ranks->rank ||
            !memory.holds(one.bytes, one.count)) {
            return ncclInvalidArgument;
        }
    }
    messages.front().ranks->steps_to_settle = 2;
    enqueue_work(stream,
                 [messages = std::move(messages)] { return std::make_shared<Exchange>(messages); });
    return ncclInProgress;
}

ncclResult_t add(Message message) {
    open_group.messages.push_back(std::move(message));
    return open_group.depth == 0 ? close_group() : ncclInProgress;
}

}  // namespace

void hpcai::tests::fail_next(NcclCall call) {
    next_failure = call;
}

struct ncclComm {
    std::shared_ptr<Ranks> ranks = std::make_shared<Ranks>();
};

ncclResult_t ncclGetVersion(int* version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    static int made = 0;
    Meeting meeting{.tag = kFirstTag + made++};
    MPI_Comm_rank(MPI_COMM_WORLD, &meeting.root);
    std::memcpy(id->internal, &meeting, sizeof meeting);
    return ncclSuccess;
}

/// The root collects the positions of the other ranks and broadcasts them.
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t*) {
    Meeting meeting;
    std::memcpy(&meeting, id.internal, sizeof meeting);
    auto made = std::make_unique<ncclComm>();
    Ranks& ranks = *made->ranks;
    ranks.rank = rank;
    ranks.tag = meeting.tag;
    ranks.in_world.resize(static_cast<std::size_t>(size));
    std::vector<int>& table = ranks.in_world;
    int mine = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    const auto tell = [&](int who) {
        MPI_Send(table.data(), size, MPI_INT, who, meeting.tag, MPI_COMM_WORLD);
    };
    if (rank == 0) {
        table[0] = mine;
        for (int other = 1; other < size; ++other) {
            int place[2];
            MPI_Recv(place, 2, MPI_INT, MPI_ANY_SOURCE, meeting.tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            table[static_cast<std::size_t>(place[0])] = place[1];
        }
        for (int other = 1; other < size; ++other) tell(table[static_cast<std::size_t>(other)]);
    } else {
        const int place[2] = {rank, mine};
        MPI_Send(place, 2, MPI_INT, meeting.root, meeting.tag, MPI_COMM_WORLD);
        MPI_Recv(table.data(), size, MPI_INT, meeting.root, meeting.tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
    *comm = made.release();
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
    if (fails(hpcai::tests::NcclCall::asking)) return ncclInternalError;
    if (fails(hpcai::tests::NcclCall::async_error)) {
        *state = ncclRemoteError;
        return ncclSuccess;
    }
    int& steps = comm->ranks->steps_to_settle;
    *state = steps > 0 ? ncclInProgress : ncclSuccess;
    steps = std::max(steps - 1, 0);
    return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
    ++open_group.depth;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
    return --open_group.depth == 0 ? close_group() : ncclSuccess;
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
    if (type != ncclUint8) return ncclInvalidArgument;
    return add({comm->ranks, stream, const_cast<void*>(from), count, peer, true});
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    if (type != ncclUint8) return ncclInvalidArgument;
    return add({comm->ranks, stream, to, count, peer, false});
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t how, ncclComm_t comm, cudaStream_t stream) {
    if (type != ncclFloat32 || how != ncclSum || from != to) return ncclInvalidArgument;
    enqueue_work(stream, [ranks = comm->ranks, values = std::span(static_cast<float*>(to), count)] {
        return std::make_shared<SumOfAll>(ranks, values);
    });
    return ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t) {
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    delete comm;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    comm->ranks->is_aborted = true;
    return ncclCommDestroy(comm);
}

const char* ncclGetErrorString(ncclResult_t status) {
    switch (status) {
        case ncclSuccess:
            return "no error";
        case ncclSystemError:
            return "unhandled system error";
        case ncclInternalError:
            return "internal error";
        case ncclRemoteError:
            return "remote process exited or there was a network error";
        default:
            return "an error";
    }
}

const char* ncclGetLastError(ncclComm_t) {
    return "";
}
