// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <list>

#include <mpi.h>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/comm/deadline_guard.hpp>
#include <hpcai/comm/launch.hpp>
#include <hpcai/comm/mpi_world.hpp>

#include "channel.hpp"

namespace hpcai::comm {
namespace {

constexpr int kAgreementTag = 1;
constexpr int kReleaseTag = 2;
constexpr int kVotersTag = 3;
constexpr int kTagsPerRun = 4;
constexpr std::chrono::milliseconds kPollInterval{2};
constexpr double kFinalizeShareIfLost = 0.1;  // of finalize_seconds, as lost ranks cannot join
// A leader logs its wait after this share of its time limit, such as 10 s of 10 min.
constexpr double kQuietShareOfGrace = 1.0 / 60;
constexpr double kQuietShareOfStop = 1.0 / 6;  // if its group has stopped, such as 5 s of 30 s

double seconds_now() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
}

std::vector<std::string> gather_hosts(Communicator& everyone, const std::vector<int>& nodes) {
    std::array<char, MPI_MAX_PROCESSOR_NAME> mine{};
    int length = 0;
    check_mpi(MPI_Get_processor_name(mine.data(), &length), "MPI_Get_processor_name");
    const auto lowest = std::ranges::find(nodes, nodes[everyone.rank()]) - nodes.begin();
    std::vector<std::string> hosts =
        all_gather_strings(everyone, lowest == everyone.rank() ? mine.data() : "");
    std::erase(hosts, "");
    hosts.shrink_to_fit();  // from one string per rank to one per node
    return hosts;
}

std::vector<int> gather_nodes(Communicator& everyone, const WorldLimits& limits,
                              const std::shared_ptr<KeptBuffers>& kept) {
    MPI_Comm shared = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, everyone.rank(),
                                  MPI_INFO_NULL, &shared),
              "MPI_Comm_split_type");
    const auto node_ranks = make_mpi_communicator(shared, limits, kept);
    int lowest = everyone.rank();
    node_ranks->broadcast(std::as_writable_bytes(std::span(&lowest, 1)), 0);
    std::vector<int> nodes = all_gather(everyone, lowest);
    std::map<int, int> numbers;  // of nodes, by lowest rank
    for (int& node : nodes) {
        node = numbers.try_emplace(node, static_cast<int>(numbers.size())).first->second;
    }
    return nodes;
}

void log_wait_for_groups(const GroupStatus& mine, double grace_seconds) {
    std::cerr << fmt::format(
        "group {} has {} and waits for the other groups; silent groups time out {:.0f} s after the "
        "latest report of a group that {}\n",
        mine.group, mine.has_stopped() ? "stopped" : "ended", grace_seconds,
        mine.has_stopped() ? "stopped" : "finished");
}

}  // namespace

/// Messages in flight. Their receivers may be dead, so each message is kept until MPI has sent it
/// or the process ends.
struct MpiWorld::Outbox {
    struct PendingSend {
        std::vector<std::byte> bytes;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    std::list<PendingSend> pending;
    std::shared_ptr<KeptBuffers> kept = std::make_shared<KeptBuffers>();

    /// Skips a receiver if MPI reports that it is gone.
    void send(std::vector<std::byte> bytes, int world_rank, int tag) {
        PendingSend& message = pending.emplace_back(std::move(bytes));
        const int code = MPI_Isend(message.bytes.data(), static_cast<int>(message.bytes.size()),
                                   MPI_BYTE, world_rank, tag, MPI_COMM_WORLD, &message.request);
        if (code != MPI_SUCCESS) pending.pop_back();
    }

    void remove_sent() {
        pending.remove_if([](PendingSend& message) {
            int complete = 0;
            const int code = MPI_Test(&message.request, &complete, MPI_STATUS_IGNORE);
            return complete != 0 || code != MPI_SUCCESS;
        });
    }

    void send_messages(MembershipAgreement& agreement, std::span<const int> leader_world_ranks,
                       int tag) {
        for (const auto& [to_group, message] : agreement.take_outgoing()) {
            send(message.to_bytes(), leader_world_ranks[to_group], tag);
        }
    }
};

namespace {

/// Receives the next message with `tag`, if one has arrived; `source` may be MPI_ANY_SOURCE.
std::optional<std::vector<std::byte>> try_receive(int source, int tag) {
    int found = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(source, tag, MPI_COMM_WORLD, &found, &status), "MPI_Iprobe");
    if (found == 0) return std::nullopt;
    int count = 0;
    check_mpi(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
    std::vector<std::byte> bytes(static_cast<std::size_t>(count));
    check_mpi(MPI_Recv(bytes.data(), count, MPI_BYTE, status.MPI_SOURCE, tag, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE),
              "MPI_Recv");
    return bytes;
}

MPI_Comm make_voters(const std::vector<int>& world_ranks, int tag, double seconds) {
    const DeadlineGuard guard(seconds, ExitCode::watchdog, "MPI_Comm_create_group");
    MPI_Group everyone = MPI_GROUP_NULL;
    MPI_Group voters = MPI_GROUP_NULL;
    MPI_Comm created = MPI_COMM_NULL;
    check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &everyone), "MPI_Comm_group");
    check_mpi(
        MPI_Group_incl(everyone, static_cast<int>(world_ranks.size()), world_ranks.data(), &voters),
        "MPI_Group_incl");
    check_mpi(MPI_Comm_create_group(MPI_COMM_WORLD, voters, tag, &created),
              "MPI_Comm_create_group");
    MPI_Group_free(&voters);
    MPI_Group_free(&everyone);
    return created;
}

/// Waits for all ranks and sleeps between polls. MPI_Finalize would poll without a pause and take
/// time from ranks that share its core and still work.
void wait_for_all_ranks() noexcept {
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return;
    for (int complete = 0; complete == 0;) {
        if (MPI_Test(&request, &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
        if (complete == 0) std::this_thread::sleep_for(kPollInterval);
    }
}

}  // namespace

std::unique_ptr<Communicator> StartUp::split(int color, int key) && {
    std::unique_ptr<Communicator> group = everyone_->split(color, key);
    everyone_.reset();
    return group;
}

MpiWorld::MpiWorld(const WorldLimits& limits)
    : limits_(limits), outbox_(std::make_unique<Outbox>()) {
    int provided = MPI_THREAD_SINGLE;
    require(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) == MPI_SUCCESS,
            ExitCode::launch, "launch: MPI_Init_thread failed");
    check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
              "MPI_Comm_set_errhandler");
    check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
}

MpiWorld::~MpiWorld() {
    finish(ExitCode::internal);
}

std::string MpiWorld::library_version() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    check_mpi(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
    const std::string_view view(text.data(), static_cast<std::size_t>(length));
    // Open MPI's length includes the final zero.
    return std::string(view.substr(0, view.find('\0')));
}

/// Each run has its own tags, because messages of an earlier run may arrive late.
int MpiWorld::run_tag(int purpose) const {
    return runs_ * kTagsPerRun + purpose;
}

StartUp MpiWorld::start_up() {
    ensure(may_start_, "start_up() was called twice in a run");
    may_start_ = false;
    ++runs_;
    const DeadlineGuard guard(limits_.wait_seconds, ExitCode::watchdog, "MPI_Comm_dup");
    MPI_Comm copy = MPI_COMM_NULL;
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
    StartUp start(make_mpi_communicator(copy, limits_, outbox_->kept));
    start.node_of_world_rank_ = gather_nodes(start.everyone(), limits_, outbox_->kept);
    start.hosts_ = gather_hosts(start.everyone(), start.node_of_world_rank_);
    return start;
}

AgreedMembers MpiWorld::agree_on_members(const GroupStatus& mine,
                                         std::span<const int> leader_world_ranks,
                                         const MembershipAgreementDeadlines& deadlines) {
    MembershipAgreement agreement(mine, static_cast<int>(leader_world_ranks.size()), deadlines,
                                  seconds_now());
    const int tag = run_tag(kAgreementTag);
    outbox_->send_messages(agreement, leader_world_ranks, tag);
    const double begin = seconds_now();
    const bool has_stopped = mine.has_stopped();
    const double grace = has_stopped ? deadlines.stopped_seconds : deadlines.status_seconds;
    const double quiet_seconds = grace * (has_stopped ? kQuietShareOfStop : kQuietShareOfGrace);
    bool may_log = mine.group <= 1;  // two leaders log the wait, in case one of them is gone
    while (!agreement.decided()) {
        if (may_log && seconds_now() - begin > quiet_seconds) {
            may_log = false;
            log_wait_for_groups(mine, grace);
        }
        bool idle = true;
        while (const auto bytes = try_receive(MPI_ANY_SOURCE, tag)) {
            agreement.receive(AgreementMessage::from_bytes(*bytes), seconds_now());
            idle = false;
        }
        agreement.advance(seconds_now());
        outbox_->send_messages(agreement, leader_world_ranks, tag);
        outbox_->remove_sent();
        if (idle && !agreement.decided()) std::this_thread::sleep_for(kPollInterval);
    }
    AgreedMembers agreed{agreement.decision(), nullptr};
    others_may_work_ = agreed.decision.has_absent_group();
    // After a stop, absent groups count as lost, because the scheduler may end the job soon.
    has_lost_ranks_ = agreed.decision.has_lost_rank() ||
                      (agreed.decision.has_stopped_group() && agreed.decision.has_absent_group());
    if (agreed.decision.votes(mine.group)) {
        std::vector<int> voters;
        for (const int group : agreed.decision.voters()) {
            voters.push_back(leader_world_ranks[group]);
        }
        const double seconds = std::max(limits_.wait_seconds, 2 * deadlines.reply_seconds);
        agreed.leaders = make_mpi_communicator(make_voters(voters, run_tag(kVotersTag), seconds),
                                               limits_, outbox_->kept);
    }
    return agreed;
}

void MpiWorld::announce_loss(const GroupStatus& lost, std::span<const int> leader_world_ranks) {
    ensure(lost.state == GroupState::lost, "group {} is not lost", lost.group);
    const AgreementMessage message{MembershipAgreementKind::status, lost.group, 0, {lost}};
    for (int group = 0; std::cmp_less(group, leader_world_ranks.size()); ++group) {
        if (group == lost.group) continue;
        outbox_->send(message.to_bytes(), leader_world_ranks[group], run_tag(kAgreementTag));
    }
}

void MpiWorld::release(std::span<const int> world_ranks, NextAction next) {
    const bool is_another = next == NextAction::another_run;
    const std::vector bytes{std::byte{others_may_work_}, std::byte{is_another},
                            std::byte{has_lost_ranks_}};
    for (const int world_rank : world_ranks) outbox_->send(bytes, world_rank, run_tag(kReleaseTag));
    may_start_ = is_another;
}

std::optional<NextAction> MpiWorld::wait_for_exit_permit(int world_rank, double seconds) {
    const double until = seconds_now() + seconds;
    do {
        if (const auto bytes = try_receive(world_rank, run_tag(kReleaseTag))) {
            const auto is_set = [&](std::size_t index) {
                return index < bytes->size() && (*bytes)[index] != std::byte{0};
            };
            others_may_work_ = bytes->empty() || is_set(0);
            may_start_ = is_set(1);
            has_lost_ranks_ = is_set(2);
            return may_start_ ? NextAction::another_run : NextAction::exit;
        }
        std::this_thread::sleep_for(kPollInterval);
    } while (seconds_now() < until);
    others_may_work_ = has_lost_ranks_ = true;
    return std::nullopt;
}

bool MpiWorld::exit_would_end_others() const {
    return exit_ends_other_ranks([](const char* name) { return std::getenv(name); });
}

void MpiWorld::finish(ExitCode exit_code) noexcept {
    if (finished_) return;
    finished_ = true;
    const bool must_wait = others_may_work_ && exit_would_end_others();
    const double seconds = limits_.finalize_seconds * (exit_code == ExitCode::ok ? 2 : 1) *
                           (has_lost_ranks_ ? kFinalizeShareIfLost : 1);
    const DeadlineGuard guard(must_wait ? limits_.longest_seconds : seconds, exit_code,
                              "MPI_Finalize");
    wait_for_all_ranks();
    MPI_Finalize();
}

void MpiWorld::abort(ExitCode exit_code) noexcept {
    const DeadlineGuard guard(limits_.finalize_seconds, exit_code, "MPI_Abort");
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(exit_code));
    std::_Exit(static_cast<int>(exit_code));
}

}  // namespace hpcai::comm
