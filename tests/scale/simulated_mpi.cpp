// SPDX-License-Identifier: Apache-2.0
#include "simulated_mpi.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>

#include <simgrid/engine.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/deadline_guard.hpp>

using namespace hpcai;

std::vector<Sent> sent_by_rank;
int ranks_per_node = 1;

int world_rank() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

namespace {

int size_of(MPI_Datatype type) {
    int bytes = 0;
    MPI_Type_size(type, &bytes);
    return bytes;
}

int start_send(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm ranks,
               MPI_Request* request) {
    Sent& sent = sent_by_rank.at(static_cast<std::size_t>(world_rank()));
    ++sent.messages;
    sent.bytes += std::int64_t{count} * size_of(type);
    return MPI_Isend(data, count, type, to, tag, ranks, request);
}

constexpr int kTag = 32000;  // of the collectives below

struct Ranks {
    explicit Ranks(MPI_Comm communicator) : handle(communicator) {
        MPI_Comm_rank(handle, &rank);
        MPI_Comm_size(handle, &size);
    }
    void send(const void* data, int count, MPI_Datatype type, int to) {
        MPI_Request request = MPI_REQUEST_NULL;
        start_send(data, count, type, to, kTag, handle, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    void receive(void* data, int count, MPI_Datatype type, int from) {
        MPI_Recv(data, count, type, from, kTag, handle, MPI_STATUS_IGNORE);
    }
    MPI_Comm handle;
    int rank = 0, size = 1;
};

void exchange(Ranks ranks, const std::byte* sent, int bytes, std::byte* received, int partner) {
    MPI_Request request = MPI_REQUEST_NULL;
    start_send(sent, bytes, MPI_BYTE, partner, kTag, ranks.handle, &request);
    ranks.receive(received, bytes, MPI_BYTE, partner);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/// In a binomial tree, rank r > 0 receives from r without its highest bit, then starts all its
/// sends at once. Ranks are relative to the root.
void broadcast_in_tree(Ranks ranks, void* data, int count, MPI_Datatype type, int root) {
    const int mine = (ranks.rank - root + ranks.size) % ranks.size;
    const auto absolute = [&](int relative) { return (relative + root) % ranks.size; };
    int bit = 1;
    for (; bit <= mine; bit *= 2) {
    }
    if (mine != 0) ranks.receive(data, count, type, absolute(mine - bit / 2));
    std::vector<MPI_Request> sends;
    for (; mine + bit < ranks.size; bit *= 2) {
        start_send(data, count, type, absolute(mine + bit), kTag, ranks.handle,
                   &sends.emplace_back(MPI_REQUEST_NULL));
    }
    MPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE);
}

/// Values [begin, begin + length).
struct Part {
    int begin, length;
};

/// A reduce-scatter by recursive halving, first with the nearest rank (Rabenseifner 2004), for a
/// number of ranks that is a power of two. Returns the part of this rank's sums.
Part halve(Ranks ranks, std::vector<std::byte>& values, int count, MPI_Datatype type,
           MPI_Op operation) {
    ensure((ranks.size & (ranks.size - 1)) == 0 && count % ranks.size == 0,
           "{} values of {} ranks are not summed by halving", count, ranks.size);
    const int bytes = size_of(type);
    std::vector<std::byte> other(values.size());
    Part mine{0, count};
    for (int bit = 1; bit < ranks.size; bit *= 2) {
        mine.length /= 2;
        const bool is_upper = (ranks.rank & bit) != 0;
        const int sent = is_upper ? mine.begin : mine.begin + mine.length;
        mine.begin += is_upper ? mine.length : 0;
        exchange(ranks, values.data() + sent * bytes, mine.length * bytes, other.data(),
                 ranks.rank ^ bit);
        MPI_Reduce_local(other.data(), values.data() + mine.begin * bytes, mine.length, type,
                         operation);
    }
    return mine;
}

std::vector<std::byte> copy_of(const void* values, int count, MPI_Datatype type) {
    const auto* bytes = static_cast<const std::byte*>(values);
    return {bytes, bytes + std::ptrdiff_t{count} * size_of(type)};
}

/// Recursive halving, then recursive doubling.
void all_reduce_by_halving(Ranks ranks, const void* mine, void* sums, int count, MPI_Datatype type,
                           MPI_Op operation) {
    std::vector<std::byte> values = copy_of(mine, count, type);
    const int bytes = size_of(type);
    auto [begin, length] = halve(ranks, values, count, type, operation);
    for (int bit = ranks.size / 2; bit > 0; bit /= 2, length *= 2) {
        const bool is_upper = (ranks.rank & bit) != 0;
        const int theirs = is_upper ? begin - length : begin + length;
        exchange(ranks, values.data() + begin * bytes, length * bytes,
                 values.data() + theirs * bytes, ranks.rank ^ bit);
        begin = std::min(begin, theirs);
    }
    std::ranges::copy(values, static_cast<std::byte*>(sums));
}

}  // namespace

/// Deadlines of `comm` are of simulated time.
std::chrono::steady_clock::time_point std::chrono::steady_clock::now() noexcept {
    const std::chrono::duration<double> simulated(simgrid_get_clock());
    return time_point(std::chrono::duration_cast<duration>(simulated));
}

/// A simulation has its own limit (--seconds); thousands of threads that wait would slow it down.
comm::DeadlineGuard::DeadlineGuard(double, ExitCode, std::string) {}

/// The compiler options of the script replace the MPI functions of these names in `comm`.
/// The non-blocking collectives of SMPI are linear; these have the algorithms that Open MPI 4.1
/// selects for the calls of `comm` (ompi/mca/coll/libnbc). They complete before they return.
extern "C" {

int scale_MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                    MPI_Request* request) {
    return start_send(data, count, type, to, tag, comm, request);
}

/// Replaces sched_yield: simulated time advances only in calls of SimGrid.
int scale_yield() noexcept {
    return smpi_usleep(1);
}

/// Each device is a host of its own in the platform. A node has as many consecutive ranks.
int scale_MPI_Comm_split_type(MPI_Comm comm, int, int key, MPI_Info, MPI_Comm* node) {
    return MPI_Comm_split(comm, world_rank() / ranks_per_node, key, node);
}

int scale_MPI_Get_processor_name(char* name, int* length) {
    const int code = MPI_Get_processor_name(name, length);
    *length = static_cast<int>(std::string_view(name).find('.'));
    name[*length] = '\0';
    return code;
}

/// SMPI never completes a null request.
int scale_MPI_Test(MPI_Request* request, int* complete, MPI_Status* status) {
    *complete = 1;
    return *request == MPI_REQUEST_NULL ? MPI_SUCCESS : MPI_Test(request, complete, status);
}

int scale_MPI_Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm,
                     MPI_Request* request) {
    broadcast_in_tree(Ranks(comm), data, count, type, root);
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

int scale_MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {  // dissemination
    Ranks ranks(comm);
    for (int distance = 1; distance < ranks.size; distance *= 2) {
        MPI_Request sent = MPI_REQUEST_NULL;
        start_send(nullptr, 0, MPI_BYTE, (ranks.rank + distance) % ranks.size, kTag, comm, &sent);
        ranks.receive(nullptr, 0, MPI_BYTE, (ranks.rank - distance + ranks.size) % ranks.size);
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
    }
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

/// A binomial tree in place and for few ranks; the other calls are of gradients, more than 64 KiB.
int scale_MPI_Iallreduce(const void* mine, void* values, int count, MPI_Datatype type,
                         MPI_Op operation, MPI_Comm comm, MPI_Request* request) {
    Ranks ranks(comm);
    *request = MPI_REQUEST_NULL;
    if (mine != MPI_IN_PLACE && ranks.size >= 4) {
        all_reduce_by_halving(ranks, mine, values, count, type, operation);
        return MPI_SUCCESS;
    }
    if (mine != MPI_IN_PLACE) {
        std::ranges::copy(copy_of(mine, count, type), static_cast<std::byte*>(values));
    }
    std::vector<std::byte> other(static_cast<std::size_t>(count) * size_of(type));
    for (int bit = 1; bit < ranks.size; bit *= 2) {
        if ((ranks.rank & bit) != 0) {
            ranks.send(values, count, type, ranks.rank - bit);
            break;
        }
        if (ranks.rank + bit >= ranks.size) continue;
        ranks.receive(other.data(), count, type, ranks.rank + bit);
        MPI_Reduce_local(other.data(), values, count, type, operation);
    }
    return scale_MPI_Ibcast(values, count, type, 0, comm, request);
}

/// Recursive halving, then a gather in a binomial tree. In place at the root.
int scale_MPI_Ireduce(const void* mine, void* result, int count, MPI_Datatype type,
                      MPI_Op operation, int root, MPI_Comm comm, MPI_Request* request) {
    Ranks ranks(comm);
    ensure(root == 0, "rank 0 is not the root");
    const int bytes = size_of(type);
    std::vector<std::byte> values = copy_of(ranks.rank == 0 ? result : mine, count, type);
    auto [begin, length] = halve(ranks, values, count, type, operation);
    for (int bit = ranks.size / 2; bit > 0; bit /= 2, length *= 2) {
        if ((ranks.rank & bit) != 0) {
            ranks.send(values.data() + begin * bytes, length, type, ranks.rank - bit);
            break;
        }
        ranks.receive(values.data() + (begin + length) * bytes, length, type, ranks.rank + bit);
    }
    if (ranks.rank == 0) std::ranges::copy(values, static_cast<std::byte*>(result));
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}
}
