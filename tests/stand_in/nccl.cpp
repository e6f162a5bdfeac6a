// SPDX-License-Identifier: Apache-2.0
// NCCL, as far as this project uses it, between processes of MPI_COMM_WORLD whose GPUs tests/simt
// stands in for. Work is done where its stream is; a rank that never comes ends it as a failure of
// the device.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <mpi.h>
#include <nccl.h>

#include "simt/runtime.hpp"
#include "simt/streams.hpp"

namespace {

constexpr int kFirstTag = 20000;
constexpr std::chrono::seconds kLongestWait{60};

/// Behind an ncclUniqueId.
struct Meeting {
    int root = 0;  // in MPI_COMM_WORLD
    int tag = 0;
};

struct Ranks {
    int rank = 0;
    int tag = 0;
    std::vector<int> in_world;
    std::atomic<bool> is_aborted = false;
    int steps_to_settle = 0;  // how often it is still asked in vain whether it has settled

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

std::vector<MPI_Status> complete(std::vector<MPI_Request>& requests, const Ranks& ranks) {
    const auto end = std::chrono::steady_clock::now() + kLongestWait;
    std::vector<MPI_Status> statuses(requests.size());
    for (int done = 0; done == 0;) {
        MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, statuses.data());
        if (done != 0) break;
        if (ranks.is_aborted) throw std::runtime_error("NCCL's work was aborted");
        if (std::chrono::steady_clock::now() > end) {
            throw std::runtime_error("NCCL's work waited too long for another rank");
        }
    }
    return statuses;
}

void exchange(const std::vector<Message>& messages) {
    if (messages.empty()) return;
    std::vector<MPI_Request> requests;
    for (const Message& one : messages) {
        const int world_rank = one.ranks->in_world[static_cast<std::size_t>(one.peer)];
        const auto count = static_cast<int>(one.count);
        MPI_Request& request = requests.emplace_back();
        if (one.is_send) {
            MPI_Isend(one.bytes, count, MPI_BYTE, world_rank, one.ranks->tag, MPI_COMM_WORLD,
                      &request);
        } else {
            MPI_Irecv(one.bytes, count, MPI_BYTE, world_rank, one.ranks->tag, MPI_COMM_WORLD,
                      &request);
        }
    }
    const std::vector<MPI_Status> statuses = complete(requests, *messages.front().ranks);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        int count = 0;
        MPI_Get_count(&statuses[i], MPI_BYTE, &count);
        if (!messages[i].is_send && static_cast<std::size_t>(count) != messages[i].count) {
            throw std::runtime_error("NCCL got a message of another length");
        }
    }
}

/// All give theirs to all, who add in the order of ranks.
void sum(const std::shared_ptr<Ranks>& ranks, float* values, std::size_t count) {
    const std::vector<float> mine(values, values + count);
    std::vector<std::vector<float>> all(ranks->in_world.size(), mine);
    std::vector<Message> messages;
    for (int peer = 0; peer < ranks->size(); ++peer) {
        if (peer == ranks->rank) continue;
        Message message{ranks, nullptr, const_cast<float*>(mine.data()), count * sizeof(float),
                        peer,  true};
        messages.push_back(message);
        message.is_send = false;
        message.bytes = all[static_cast<std::size_t>(peer)].data();
        messages.push_back(message);
    }
    exchange(messages);
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = std::accumulate(all.begin(), all.end(), 0.0F,
                                    [i](float so_far, const auto& one) { return so_far + one[i]; });
    }
}

/// What a thread has begun with ncclGroupStart.
struct OpenGroup {
    int depth = 0;
    std::vector<Message> messages;
};
thread_local OpenGroup open_group;

ncclResult_t close_group() {
    std::vector<Message> messages = std::exchange(open_group.messages, {});
    if (messages.empty()) return ncclSuccess;
    const cudaStream_t stream = messages.front().stream;
    const auto& memory = hpcai::simt::Runtime::instance().memory;
    for (const Message& one : messages) {
        if (one.stream != stream || one.count == 0 || one.peer == one.ranks->rank ||
            !memory.holds(one.bytes, one.count)) {
            return ncclInvalidArgument;
        }
    }
    messages.front().ranks->steps_to_settle = 2;
    hpcai::simt::enqueue(stream, [messages = std::move(messages)] { exchange(messages); });
    return ncclInProgress;
}

ncclResult_t add(Message message) {
    open_group.messages.push_back(std::move(message));
    return open_group.depth == 0 ? close_group() : ncclInProgress;
}

}  // namespace

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

/// The root hears where the others are, and tells all.
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
    hpcai::simt::enqueue(
        stream, [ranks = comm->ranks, to, count] { sum(ranks, static_cast<float*>(to), count); });
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
    return status == ncclSuccess ? "no error" : "an error";
}

const char* ncclGetLastError(ncclComm_t) {
    return "";
}
