// SPDX-License-Identifier: Apache-2.0
// Runs the start-up, the gradient all-reduces and the membership agreement of a run on simulated
// ranks (SimGrid's SMPI). scripts/simulate_scale.sh compiles it together with `comm` and `plan`.
// All ranks are in one process and share its globals.
#include <chrono>
#include <cmath>
#include <iostream>

#include <fmt/core.h>
#include <mpi.h>

#include <hpcai/base/process.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/comm/mpi_world.hpp>
#include <hpcai/evaluation/ensemble.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

using namespace hpcai;

namespace {

struct Sent {
    std::int64_t messages = 0;
    std::int64_t bytes = 0;
};
std::vector<Sent> sent_by_rank;  // [world_rank], in this phase

int size_of(MPI_Datatype type) {
    int bytes = 0;
    MPI_Type_size(type, &bytes);
    return bytes;
}

int world_rank() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
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

/// The compiler options of the script replace the MPI functions of these names in `comm`.
/// The non-blocking collectives of SMPI are linear; these have the algorithms that Open MPI 4.1
/// selects for the calls of `comm` (ompi/mca/coll/libnbc). They complete before they return.
extern "C" {

int scale_MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                    MPI_Request* request) {
    return start_send(data, count, type, to, tag, comm, request);
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

namespace {

// Gradients and predictions have a thousandth of their values, on links with a thousandth of their
// bandwidth.
constexpr int kShrink = 1000;
constexpr std::size_t kGradients = 25'600'000 / kShrink;
constexpr std::size_t kBucketBytes = (std::size_t{25} << 20) / kShrink;
constexpr std::size_t kParameters = 160;
constexpr std::size_t kSamples = 50'000 / kShrink;
constexpr std::int64_t kClasses = 1024;  // instead of 1,000, so that many powers of two divide it

double wall_seconds() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
}

/// Runs `work` on all ranks and prints its costs: those of the slowest or busiest rank.
template <typename Work>
void run_phase(const std::string& name, const Work& work) {
    MPI_Barrier(MPI_COMM_WORLD);
    static double wall_begin = 0;
    const auto rank = static_cast<std::size_t>(world_rank());
    if (rank == 0) wall_begin = wall_seconds();
    sent_by_rank[rank] = {};
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    work();
    double seconds = MPI_Wtime() - begin, slowest = 0;
    MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    const Sent mine = sent_by_rank[rank];
    Sent most;
    MPI_Reduce(&mine.messages, &most.messages, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine.bytes, &most.bytes, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) return;
    fmt::print("{:6} {:24} {:12.6f} {:9} {:12} {:8.2f} {:8.0f}\n", sent_by_rank.size(), name,
               slowest, most.messages, most.bytes, wall_seconds() - wall_begin,
               peak_resident_bytes().value_or(0) / 1e6);
    std::fflush(stdout);
}

void sum_gradients(comm::Communicator& group, const comm::AllReduceOptions& options) {
    std::vector<float> gradients(kGradients, 1.0F);
    std::vector<comm::Range> parameters;
    for (std::size_t begin = 0; begin < kGradients; begin += kGradients / kParameters) {
        parameters.push_back({begin, begin + kGradients / kParameters});
    }
    const auto reducer = comm::make_point_to_point_reducer(group, nullptr, options);
    comm::GradientBuckets buckets(*reducer, gradients, parameters, {kBucketBytes, true});
    run_phase(fmt::format("{} {}", name_of(options.algorithm), comm::name_of(options.format)), [&] {
        for (std::size_t index = parameters.size(); index-- > 0;) buckets.ready(index);
        buckets.finish();
    });
    const auto expected = static_cast<float>(group.size());
    for (const float sum : {gradients.front(), gradients.back()}) {
        ensure(std::abs(sum - expected) < expected / 100, "a sum is {}", sum);
    }
}

void agree_and_vote(comm::MpiWorld& world, const plan::RankPlace& place,
                    const std::vector<int>& leaders, bool has_slow_links) {
    comm::AgreedMembers agreed;
    run_phase("membership agreement", [&] {
        if (place.group_rank != 0) return;
        const auto status = comm::GroupStatus::of(place.group, comm::GroupState::completed);
        agreed = world.agree_on_members(status, leaders, {});
        ensure(agreed.leaders && std::cmp_equal(agreed.leaders->size(), leaders.size()),
               "a group does not vote");
    });
    if (!has_slow_links) return;
    const std::vector<float> mine(agreed.leaders ? kSamples * kClasses : 0, 0.5F);
    run_phase("vote", [&] {
        if (!agreed.leaders) return;
        const std::vector<float> mean =
            evaluation::ensemble_vote(*agreed.leaders, evaluation::Vote::soft, mine, kClasses);
        ensure(mean.empty() || mean == mine, "a mean of predictions is wrong");
    });
}

/// Gradients need another platform, with a thousandth of the bandwidth.
void run_phases(comm::MpiWorld& world, int degree, bool gradients) {
    std::optional<comm::StartUp> start;
    run_phase("hosts and nodes", [&] { start.emplace(world.start_up()); });
    run_phase("all-gather of a string", [&] {
        const auto all = comm::all_gather_strings(start->everyone(), std::string(64, 'a'));
        ensure(all.back().size() == 64, "a string is lost");
    });
    run_phase("broadcast, agreement", [&] {
        comm::broadcast(start->everyone(), std::string(8192, 'a'));
        comm::collective_try(start->everyone(), [] {});
    });
    std::optional<plan::ParallelismController> controller;
    const int groups = world.size() / degree;
    run_phase("placement", [&] {
        const plan::Layout layout{.ranks = world.size(), .groups = groups, .degree = degree};
        controller.emplace(layout, start->node_of_world_rank());
    });
    const plan::RankPlace place = controller->place(world.rank());
    std::unique_ptr<comm::Communicator> group;
    run_phase("split", [&] { group = std::move(*start).split(place.group, place.group_rank); });
    std::vector<int> leaders;
    for (int leader = 0; leader < groups; ++leader) leaders.push_back(controller->leader(leader));
    comm::AllReduceOptions options;
    for (int rank = 0; rank < degree; ++rank) {
        const int node = controller->place(controller->world_rank_of(place.group, rank)).node;
        options.node_of_rank.push_back(node);
    }
    controller.reset();
    using enum comm::AllReduceAlgorithm;
    for (const auto algorithm : {all_reduce, torus_2d, hierarchical, native}) {
        options.algorithm = algorithm;
        if (gradients) sum_gradients(*group, options);
    }
    options.algorithm = all_reduce;
    for (const auto format : {comm::WireFormat::bf16, comm::WireFormat::int8}) {
        options.format = format;
        if (gradients) sum_gradients(*group, options);
    }
    agree_and_vote(world, place, leaders, gradients);
}

}  // namespace

int main(int arguments, char** values) {
    try {
        const int degree = arguments > 1 ? std::atoi(values[1]) : 8;
        comm::MpiWorld world;
        if (sent_by_rank.empty()) sent_by_rank.resize(static_cast<std::size_t>(world.size()));
        run_phases(world, degree, arguments > 2);
        world.finish(ExitCode::ok);
    } catch (const Error& error) {
        std::cerr << error.what() << '\n';
        return static_cast<int>(error.code());
    }
    return 0;
}
