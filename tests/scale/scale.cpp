// SPDX-License-Identifier: Apache-2.0
// Runs the start-up, the all-reduces of a step, the membership agreement and the vote of a run on
// simulated ranks (SimGrid's SMPI). scripts/simulate_scale.sh compiles it with `comm` and `plan`.
#include <chrono>
#include <cmath>
#include <iostream>
#include <numeric>

#include <fmt/core.h>
#include <mpi.h>

#include <hpcai/base/process.hpp>
#include <hpcai/comm/all_reduce_traffic.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/comm/mpi_world.hpp>
#include <hpcai/comm/sync_batch_norm_group.hpp>
#include <hpcai/comm/tensor_parallel_exchange.hpp>
#include <hpcai/evaluation/ensemble.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/plan/pipeline.hpp>

#include "simulated_mpi.hpp"
#include "training/stage_boundary.hpp"

using namespace hpcai;

namespace {

// Gradients and predictions have 1 / 390.625 of their values, on links with 1 / 390.625 of their
// bandwidth. The sizes divide into equal parts of whole wire blocks for up to 64 ranks.
constexpr std::size_t kGradients = 65'536;                // instead of 25.6 M
constexpr std::size_t kBucketBytes = kGradients / 4 * 4;  // four buckets of fp32
constexpr std::size_t kParameters = 128;
constexpr int kKernelsPerParameter = 2;  // of a backward pass
constexpr std::size_t kSamples = 128;    // instead of 50,000
constexpr std::int64_t kClasses = 1024;  // instead of 1,000, so that many powers of two divide it
constexpr std::size_t kLayerBytes = 263'168;  // instead of 103 MB: bf16, 64 x 56 x 56 x 256
constexpr std::size_t kStageBytes = 8'192;    // instead of 3.2 MB: bf16, 8 x 14 x 14 x 1,024
constexpr int kMicroBatches = 16;
constexpr useconds_t kForwardMicroseconds = 100, kBackwardMicroseconds = 200;
constexpr double kSilentSeconds = 0.2;  // of the agreement with a silent leader

double wall_seconds() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
}

/// Runs `work` on all ranks and prints its costs: those of the slowest or busiest rank, without the
/// seconds in which a rank computes. Returns what this rank sent.
template <typename Work>
Sent run_phase(const std::string& name, const Work& work, double compute_seconds = 0) {
    static double wall_begin = 0;
    const auto rank = static_cast<std::size_t>(world_rank());
    MPI_Request complete = MPI_REQUEST_NULL;
    scale_MPI_Ibarrier(MPI_COMM_WORLD, &complete);
    if (rank == 0) wall_begin = wall_seconds();
    scale_MPI_Ibarrier(MPI_COMM_WORLD, &complete);
    sent_by_rank[rank] = {};
    const double begin = MPI_Wtime();
    work();
    const Sent mine = sent_by_rank[rank];
    std::array<double, 3> most = {MPI_Wtime() - begin - compute_seconds,
                                  static_cast<double>(mine.messages),
                                  static_cast<double>(mine.bytes)};
    // The collectives of SMPI are linear, so they would take most of the wall time.
    scale_MPI_Iallreduce(MPI_IN_PLACE, most.data(), 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD,
                         &complete);
    if (rank != 0) return mine;
    fmt::print("{:6} {:24} {:12.6f} {:9.0f} {:12.0f} {:8.2f} {:8.0f}\n", sent_by_rank.size(), name,
               most[0], most[1], most[2], wall_seconds() - wall_begin,
               peak_resident_bytes().value_or(0) / 1e6);
    std::fflush(stdout);
    return mine;
}

/// Requires that the reducer counts the bytes that MPI sent, and that the formula of `plan` gives
/// the same bytes for the group. Parts of int8 that are not whole blocks exceed the formula. The
/// reducer cannot count those of `native`.
void compare_bytes(comm::Communicator& group, const comm::GradientReducer& reducer,
                   const comm::AllReduceOptions& options, const Sent& sent) {
    const comm::PlannedAllReduce planned{options, kGradients, {}};
    const comm::AllReduceTraffic formula = comm::estimate_traffic(std::span(&planned, 1));
    const auto counted = reducer.sent();
    if (!counted) {
        ensure(formula.sent == sent.bytes, "{} bytes instead of {} were sent", sent.bytes,
               formula.sent);
        return;
    }
    const int node = options.node_of_rank[static_cast<std::size_t>(group.rank())];
    const comm::AllReduceTraffic all = comm::gather_traffic(group, node, *counted);
    const auto agrees = [&](std::int64_t sum, std::int64_t predicted) {
        const bool is_rounded = options.format == comm::WireFormat::int8;
        return sum >= predicted && sum <= predicted + (is_rounded ? predicted / 50 : 0);
    };
    ensure(counted->total == sent.bytes, "{} bytes were counted and {} sent", counted->total,
           sent.bytes);
    ensure(agrees(all.sent, formula.sent) && agrees(all.between_nodes, formula.between_nodes),
           "{} bytes instead of {} were sent, {} instead of {} to other nodes", all.sent,
           formula.sent, all.between_nodes, formula.between_nodes);
}

/// The all-reduces overlap with a backward pass in which gradients become ready at equal intervals.
void sum_gradients(comm::Communicator& group, const comm::AllReduceOptions& options,
                   double backward_seconds) {
    std::vector<float> gradients(kGradients, 1.0F);
    std::vector<comm::Range> parameters;
    for (std::size_t begin = 0; begin < kGradients; begin += kGradients / kParameters) {
        parameters.push_back({begin, begin + kGradients / kParameters});
    }
    const auto reducer = comm::make_point_to_point_reducer(group, nullptr, options);
    comm::GradientBuckets buckets(*reducer, gradients, parameters, {kBucketBytes, true});
    const std::string name =
        fmt::format("{} {}", name_of(options.algorithm), comm::name_of(options.format));
    constexpr double kKernels = double{kKernelsPerParameter} * kParameters;
    const auto microseconds = static_cast<useconds_t>(1e6 * backward_seconds / kKernels);
    ensure(microseconds > 0 || backward_seconds == 0, "expected at least {} us of backward, got {}",
           kKernels, 1e6 * backward_seconds);
    const auto backward = [&] {
        for (std::size_t index = parameters.size(); index-- > 0;) {
            for (int kernel = 0; microseconds > 0 && kernel < kKernelsPerParameter; ++kernel) {
                smpi_usleep(microseconds);
                buckets.progress();
            }
            buckets.ready(index);
        }
        buckets.finish();
    };
    const Sent sent = run_phase(name, backward, 1e-6 * microseconds * kKernels);
    compare_bytes(group, *reducer, options, sent);
    const auto expected = static_cast<float>(group.size());
    for (const float sum : {gradients.front(), gradients.back()}) {
        ensure(std::abs(sum - expected) < expected / 100, "a sum is {}", sum);
    }
}

/// The last leader answers unless the phase is of a silent leader.
comm::AgreedMembers agree(comm::MpiWorld& world, const plan::RankPlace& place,
                          const std::vector<int>& leaders, bool all_answer) {
    comm::AgreedMembers agreed;
    run_phase(all_answer ? "agreement" : "agreement, silent leader", [&] {
        if (place.group_rank != 0 || (world.rank() == leaders.back() && !all_answer)) return;
        const auto status = comm::GroupStatus::of(place.group, comm::GroupState::completed);
        comm::MembershipAgreementDeadlines deadlines;
        if (!all_answer) deadlines.status_seconds = deadlines.reply_seconds = kSilentSeconds;
        agreed = world.agree_on_members(status, leaders, deadlines);
        const std::size_t expected = leaders.size() - (all_answer ? 0 : 1);
        ensure(agreed.leaders && std::cmp_equal(agreed.leaders->size(), expected),
               "a group does not vote");
    });
    return agreed;
}

void vote(comm::Communicator* leaders) {
    run_phase("vote", [&] {
        if (leaders == nullptr) return;
        const std::vector<float> mine(kSamples * kClasses, 0.5F);
        const std::vector<float> mean =
            evaluation::ensemble_vote(*leaders, evaluation::Vote::soft, mine, kClasses);
        ensure(mean.empty() || mean == mine, "a mean of predictions is wrong");
    });
}

/// The statistics of a BatchNorm layer of 64 channels, over the whole group.
void sum_statistics(comm::Communicator& group, const std::vector<int>& node_of_rank) {
    comm::SyncBatchNormGroup statistics(group.size());
    statistics.connect(group, node_of_rank);
    std::vector<double> sums(2 * 64, 1);
    run_phase("SyncBatchNorm of a layer", [&] { statistics.sum(sums); });
    ensure(sums.front() == group.size(), "a statistic is wrong");
}

/// Each rank of the group is a shard and sends its channels of a layer's activations to the others.
void exchange_activations(comm::Communicator& group) {
    comm::TensorParallelExchange exchange(group.size(), group.rank());
    std::vector<int> ranks(static_cast<std::size_t>(group.size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    exchange.connect(group, ranks);
    const auto bytes = [&](int) { return kLayerBytes / ranks.size(); };
    const auto write = [&](int, std::span<std::byte> to) {
        std::ranges::fill(to, static_cast<std::byte>(group.rank()));
    };
    const auto read = [](int shard, std::span<const std::byte> from) {
        ensure(from.empty() || from.back() == static_cast<std::byte>(shard), "a shard is wrong");
    };
    const Sent sent = run_phase("tensor parallelism", [&] {
        exchange.exchange({bytes, bytes, write, read});
    });
    ensure(exchange.accounting().bytes_sent == sent.bytes, "{} bytes were counted and {} sent",
           exchange.accounting().bytes_sent, sent.bytes);
}

/// Each rank of the group is a stage of a pipeline with the schedule 1f1b. The time contains the
/// waits while the pipeline fills and drains.
void run_pipeline(comm::Communicator& group) {
    const int stage = group.rank(), last = group.size() - 1;
    const auto tasks = plan::pipeline_tasks(config::PipelineSchedule::one_forward_one_backward,
                                            group.size(), stage, kMicroBatches);
    const auto route = [&](int peer, int tag) {
        const bool is_stage = peer >= 0 && peer <= last;
        return training::Route{peer, tag, is_stage ? kStageBytes : 0};
    };
    const training::Route values_out = route(stage + 1, training::kValueTag);
    const training::Route gradients_out = route(stage - 1, training::kGradientTag);
    training::Inbox values_in(group, route(stage - 1, training::kValueTag));
    training::Inbox gradients_in(group, route(stage + 1, training::kGradientTag));
    training::Outbox outbox(group);
    const auto pass = [&](training::Inbox& inbox, bool receives, const training::Route& out,
                          useconds_t microseconds, int micro_batch) {
        const auto content = static_cast<std::byte>(micro_batch);
        group.wait_until([&] {
            outbox.test();
            return inbox.test();
        });
        if (receives)
            inbox.take([&](std::span<const std::byte> from) {
                ensure(from.back() == content, "a micro-batch is wrong");
            });
        smpi_usleep(microseconds);
        if (out.bytes > 0)
            outbox.send(out, [&](std::span<std::byte> to) { std::ranges::fill(to, content); });
    };
    const double compute_seconds =
        1e-6 * kMicroBatches * (kForwardMicroseconds + kBackwardMicroseconds);
    const auto step = [&] {
        values_in.begin(kMicroBatches);
        gradients_in.begin(kMicroBatches);
        for (const auto& [which, micro_batch] : tasks) {
            if (which == plan::PipelinePass::forward) {
                pass(values_in, stage > 0, values_out, kForwardMicroseconds, micro_batch);
            } else {
                pass(gradients_in, stage < last, gradients_out, kBackwardMicroseconds, micro_batch);
            }
        }
        group.wait_until([&] { return outbox.test(); });
    };
    const Sent sent = run_phase("pipeline 1f1b", step, compute_seconds);
    ensure(outbox.bytes_sent() == sent.bytes, "{} bytes were counted and {} sent",
           outbox.bytes_sent(), sent.bytes);
}

class Simulation {
public:
    Simulation(int degree, std::string part, std::string algorithms, double backward_seconds)
        : degree_(degree),
          part_(std::move(part)),
          algorithms_(std::move(algorithms)),
          backward_seconds_(backward_seconds) {
        if (sent_by_rank.empty()) sent_by_rank.resize(static_cast<std::size_t>(world_.size()));
    }

    void run() {
        start_up();
        if (part_ == "step") sum_all();
        const auto agreed = agree(world_, place_, leaders_, part_ != "silent");
        if (part_ == "step") vote(agreed.leaders.get());
        world_.finish(ExitCode::ok);
    }

private:
    void start_up() {
        std::optional<comm::StartUp> start;
        run_phase("hosts and nodes", [&] { start.emplace(world_.start_up()); });
        run_phase("all-gather of a string", [&] {
            const auto all = comm::all_gather_strings(start->everyone(), std::string(64, 'a'));
            ensure(all.back().size() == 64, "a string is lost");
        });
        run_phase("broadcast, agreement", [&] {
            comm::broadcast(start->everyone(), std::string(8192, 'a'));
            comm::collective_try(start->everyone(), [] {});
        });
        run_phase("placement", [&] {
            const int groups = world_.size() / degree_;
            const plan::Layout layout{.ranks = world_.size(), .groups = groups, .degree = degree_};
            const plan::ParallelismController controller(layout, start->node_of_world_rank());
            place_ = controller.place(world_.rank());
            for (int group = 0; group < groups; ++group) {
                leaders_.push_back(controller.leader(group));
            }
            for (int rank = 0; rank < degree_; ++rank) {
                const int world_rank = controller.world_rank_of(place_.group, rank);
                node_of_rank_.push_back(controller.place(world_rank).node);
            }
        });
        run_phase("split",
                  [&] { group_ = std::move(*start).split(place_.group, place_.group_rank); });
    }

    void sum_all() {
        using enum comm::WireFormat;
        using enum comm::AllReduceAlgorithm;
        for (const auto algorithm : {all_reduce, torus_2d, hierarchical, native}) {
            if (algorithms_.find(comm::name_of(algorithm)) == std::string::npos) continue;
            for (const auto format : {fp32, bf16, int8}) {
                if (algorithm == native && format != fp32) continue;
                sum_gradients(
                    *group_,
                    {.algorithm = algorithm, .format = format, .node_of_rank = node_of_rank_},
                    backward_seconds_);
            }
        }
        sum_statistics(*group_, node_of_rank_);
        exchange_activations(*group_);
        run_pipeline(*group_);
    }

    int degree_;
    std::string part_;
    std::string algorithms_;  // those whose names it contains
    double backward_seconds_;
    comm::MpiWorld world_;
    plan::RankPlace place_;
    std::vector<int> leaders_;       // world ranks
    std::vector<int> node_of_rank_;  // of the group
    std::unique_ptr<comm::Communicator> group_;
};

}  // namespace

/// Arguments: P_degree, ranks per node, the part ("start", "step" or "silent"), the names of
/// all-reduce algorithms, and the seconds of a backward pass. A step needs another platform, with 1
/// / 390.625 of the bandwidths.
int main(int arguments, char** values) {
    try {
        ensure(arguments == 6, "expected 5 arguments, got {}", arguments - 1);
        ranks_per_node = std::atoi(values[2]);
        Simulation(std::atoi(values[1]), values[3], values[4], std::atof(values[5])).run();
    } catch (const Error& error) {
        std::cerr << error.what() << '\n';
        return static_cast<int>(error.code());
    }
    return 0;
}
