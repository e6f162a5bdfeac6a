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

/// The root has relative rank 0 in the binomial tree.
void broadcast_in_tree(Ranks ranks, void* data, int count, MPI_Datatype type, int root) {
    const int mine = (ranks.rank - root + ranks.size) % ranks.size;
    const auto absolute = [&](int relative) { return (relative + root) % ranks.size; };
    int bit = 1;
    for (; bit < ranks.size && (mine & bit) == 0; bit *= 2) {
    }
    if (mine != 0) ranks.receive(data, count, type, absolute(mine - bit));
    for (bit /= 2; bit > 0; bit /= 2) {
        if (mine + bit < ranks.size) ranks.send(data, count, type, absolute(mine + bit));
    }
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

int scale_MPI_Iallreduce(const void*, void* values, int count, MPI_Datatype type, MPI_Op operation,
                         MPI_Comm comm, MPI_Request* request) {  // binomial tree, in place
    Ranks ranks(comm);
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

/// Recursive halving, then a gather in a binomial tree (Rabenseifner 2004), for a number of ranks
/// that is a power of two. In place at the root.
int scale_MPI_Ireduce(const void* mine, void* result, int count, MPI_Datatype type,
                      MPI_Op operation, int root, MPI_Comm comm, MPI_Request* request) {
    Ranks ranks(comm);
    const int bytes = size_of(type);
    ensure(root == 0 && (ranks.size & (ranks.size - 1)) == 0 && count % ranks.size == 0,
           "{} values of {} ranks are not summed by halving", count, ranks.size);
    const auto* input = static_cast<const std::byte*>(ranks.rank == 0 ? result : mine);
    std::vector<std::byte> values(input, input + std::ptrdiff_t{count} * bytes);
    std::vector<std::byte> other(values.size());
    int begin = 0, length = count;
    for (int bit = ranks.size / 2; bit > 0; bit /= 2) {
        length /= 2;
        const bool is_upper = (ranks.rank & bit) != 0;
        const int sent = (is_upper ? begin : begin + length) * bytes;
        begin += is_upper ? length : 0;
        exchange(ranks, values.data() + sent, length * bytes, other.data(), ranks.rank ^ bit);
        MPI_Reduce_local(other.data(), values.data() + begin * bytes, length, type, operation);
    }
    for (int bit = 1; bit < ranks.size; bit *= 2, length *= 2) {
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
