// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <list>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/process.hpp>
#include <hpcai/base/stop_signals.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/benchmark/run.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/comm/mpi_world.hpp>
#include <hpcai/data/data_duplicator.hpp>
#include <hpcai/group/autotune_log.hpp>
#include <hpcai/group/energy_monitor.hpp>
#include <hpcai/group/group_job.hpp>
#include <hpcai/group/model.hpp>
#include <hpcai/launch/prepare_run.hpp>
#include <hpcai/launch/run_under_mpi.hpp>
#include <hpcai/plan/group_map.hpp>
#include <hpcai/results/directory_lock.hpp>
#include <hpcai/results/repetitions.hpp>
#include <hpcai/results/result_directory.hpp>
#include <hpcai/speed/roofline.hpp>
#include <hpcai/training/faults.hpp>
#include <hpcai/verification/verdict.hpp>

#include "job_controller.hpp"

namespace hpcai::benchmark {
namespace {

using context::RunContext;
using launch::PreparedRun;

void print_run_header(const PreparedRun& run, std::ostream& log) {
    const RunContext& context = run.context;
    plan::GroupMapSettings settings;
    settings.node_names = context.hosts;
    if (context.launch.repetitions > 1) {
        log << fmt::format("repetition {} of {}, seed {}\n", context.launch.repetition,
                           context.launch.repetitions, context.config.run.seed);
    }
    log << plan::draw_group_map(context.controller, settings)
        << wrap(fmt::format("device of rank 0: {}; computing in {}", context.ranks.front().device,
                            name_of(run.resources.precision)),
                4)
        << run.device_note << "\nresult directory: " << context.output.string() << "\n";
    verification::VerdictFacts facts;
    facts.training_samples = run.resources.samples.training->samples();
    if (const auto& hold_out = run.resources.samples.hold_out)
        facts.training_samples += hold_out->samples();
    facts.validation_samples = run.resources.samples.validation->samples();
    facts.samples_sha256 = run.launch.samples_sha256;
    facts.disqualifications = run.resources.samples.disqualifications;
    config::Config series = context.config;
    series.run.seed -= static_cast<std::uint64_t>(context.launch.repetition) - 1;
    series.run.repeat = context.launch.repetitions;
    for (const std::string& rule : verification::broken_rules(series, facts)) {
        log << "the result will be INVALID: " << rule << "\n";
    }
    if (training::faults_are_built_in()) {
        log << "this program injects faults: "
            << training::describe_faults(training::faults_of_environment()) << "\n";
    }
    const std::string missing = context.is_resumed
                                    ? verification::describe_missing_submission(series)
                                    : verification::describe_missing_for_rank(series);
    if (!missing.empty()) log << wrap("the result is " + missing, 4) << "\n";
    const std::string resumed = context.is_resumed ? verification::describe_resumed(series) : "";
    if (!resumed.empty()) log << wrap("if a group trains now, the result is " + resumed, 4) << "\n";
    log << std::flush;
}

/// Rank 0 logs to standard error, because the result directory with its logs does not exist yet.
void build_model(const PreparedRun& run, std::optional<group::TrainingState>& state) {
    reset_peak_resident_bytes();  // else it includes find_flops_ceiling() and earlier runs
    const bool is_logging = run.context.place.world_rank == 0;
    const std::unique_ptr<Logger> log = make_logger("rank 0", "");
    std::optional<group::AutotuneLog> autotune_log;
    if (is_logging) autotune_log.emplace(run.resources.device->tuning(), *log);
    state.emplace(run.context, run.resources);
    if (is_logging) autotune_log->finish(run.resources.device->tuning());
}

/// Data that must outlive MPI, because MPI may still access the gradients after a failure.
struct RunSession {
    std::optional<PreparedRun> run;
    std::optional<group::TrainingState> training;
};

void release_staging(const PreparedRun& run, bool is_success, Logger& log) {
    const auto& lock = run.resources.samples.staging.lock;
    if (lock == nullptr) return;
    if (const std::int64_t lost = lock->lost_copies(); lost > 0) {
        log.warn("rank {} read {} from the source, because the staged copies were lost or damaged",
                 run.context.place.world_rank, counted(lost, "sample"));
    }
    lock->release(is_success);
}

struct RunArguments {
    comm::MpiWorld& world;
    const context::RunRequest& request;
    std::ostream& out;
};

/// Prepares a run up to the point where its groups can train. Collective among all ranks.
std::unique_ptr<Logger> start_run(const RunArguments& arguments, comm::StartUp& start_up,
                                  context::RepeatedRuns& runs, RunSession& session) {
    comm::Communicator& everyone = start_up.everyone();
    PreparedRun& run = session.run.emplace(launch::prepare_run(arguments.request, start_up, runs));
    RunContext& context = run.context;
    run.launch.roofline = speed::find_flops_ceiling(context, run.resources, everyone);
    comm::collective_try(everyone, [&] { build_model(run, session.training); });
    run.lock = results::make_result_directory(context, run.launch, std::move(run.lock), everyone);
    std::unique_ptr<Logger> log;
    comm::collective_try(everyone, [&] {
        log = group::open_group_log(context);
        if (context.launch.repetitions > 1 && context.place.world_rank == 0 && !runs.lock)
            runs.lock = results::lock_directory(runs.folder, storage::FileLock::Kind::exclusive);
    });
    if (context.place.world_rank == 0) {
        results::link_latest(context, *log);
        print_run_header(run, std::cerr);
    }
    run.resources.counters = group::find_energy_and_network_counters(context);
    context.launch.exit_ends_others = arguments.world.exit_would_end_others();
    return log;
}

/// Makes one run of `runs`. If another run follows, frees the memory that MPI no longer accesses.
results::RunEnd run_once(const RunArguments& arguments, context::RepeatedRuns& runs,
                         std::list<RunSession>& sessions) {
    const Stopwatch since_start;
    RunSession& session = sessions.emplace_back();
    comm::StartUp start_up = arguments.world.start_up();
    const std::unique_ptr<Logger> log = start_run(arguments, start_up, runs, session);
    const PreparedRun& run = *session.run;
    results::RunEnd end;
    bool is_success = false;
    {
        const plan::RankPlace& place = run.context.place;
        const auto group = std::move(start_up).split(place.group, place.group_rank);
        JobController controller({run.context, run.launch, run.resources.samples}, arguments.world,
                                 since_start);
        const group::GroupOutcome outcome =
            group::run_group(run.context, run.resources, *session.training, *group, *log);
        is_success = outcome.status.state == comm::GroupState::completed;
        release_staging(run, is_success, *log);
        end = controller.finish(outcome, *log, arguments.out);
    }
    if (end.has_next_run && is_success) {
        sessions.pop_back();
    } else if (end.has_next_run) {  // pending MPI requests may use the model, but not the samples
        session.training->device_pictures.reset();
        session.run->resources.samples = {};
    }
    return end;
}

/// Makes one run. With run.repeat, makes one run after another until all are made, or until a rank
/// is dead or hangs. Throws if a run cannot start.
ExitCode run_repetitions(const RunArguments& arguments, context::RepeatedRuns runs,
                         std::list<RunSession>& sessions) {
    for (bool is_first = true;; is_first = false) {
        try {
            const results::RunEnd end = run_once(arguments, runs, sessions);
            if (!end.has_next_run) return end.code;
        } catch (const Error& error) {
            if (!is_first && arguments.world.rank() == 0) {
                results::record_stop(
                    runs.folder,
                    fmt::format("repetition {} could not start: {}", runs.number, error.what()),
                    *runs.config, arguments.out);
            }
            throw;
        }
        ++runs.number;
    }
}

}  // namespace

ExitCode run_benchmark(const context::RunRequest& request, std::ostream& out) {
    const StopSignals signals;
    const context::RepeatedRuns runs;
    training::faults_of_environment();  // throws on all ranks if the faults are invalid
    std::list<RunSession> sessions;
    const config::Sources sources = request.sources();
    return launch::run_under_mpi(request.command_line, [&](comm::MpiWorld& world) {
        // To locate a key that an error names, the configuration files are read again. Only rank 0
        // does this, because only rank 0 prints an error that all ranks have.
        return config::locate_errors(world.rank() == 0 ? sources : config::Sources{}, [&] {
            return run_repetitions({world, request, out}, runs, sessions);
        });
    });
}

}  // namespace hpcai::benchmark
