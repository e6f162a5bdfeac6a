// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <list>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/process_memory.hpp>
#include <hpcai/base/stop_signals.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/benchmark/run.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/comm/mpi_world.hpp>
#include <hpcai/data/data_duplicator.hpp>
#include <hpcai/plan/group_map.hpp>
#include <hpcai/training/faults.hpp>
#include <hpcai/verification/submission.hpp>
#include <hpcai/verification/verdict.hpp>

#include "base_model.hpp"
#include "ceiling.hpp"
#include "core_counters.hpp"
#include "environment.hpp"
#include "group_job.hpp"
#include "group_log.hpp"
#include "group_outcome.hpp"
#include "in_world.hpp"
#include "job_controller.hpp"
#include "result_directory.hpp"
#include "start.hpp"
#include "tuning_note.hpp"

namespace hpcai::benchmark {
namespace {

verification::VerdictFacts facts_at_start(const Start& start) {
    verification::VerdictFacts facts;
    facts.training_samples = start.samples.training->samples();
    facts.validation_samples = start.samples.validation->samples();
    facts.objections = start.samples.objections;
    return facts;
}

void print_start(const Start& start, std::ostream& log) {
    plan::GroupMapSettings settings;
    for (std::size_t rank = 0; rank < start.hostnames.size(); ++rank) {
        const auto node =
            static_cast<std::size_t>(start.controller.place(static_cast<int>(rank)).node);
        if (settings.node_names.size() <= node) settings.node_names.resize(node + 1);
        settings.node_names[node] = start.hostnames[rank];
    }
    if (start.repetitions > 1) {
        log << fmt::format("repetition {} of {}, seed {}\n", start.repetition, start.repetitions,
                           start.config.run.seed);
    }
    log << plan::draw_group_map(start.controller, settings)
        << "device of rank 0: " << start.ranks.front().device << "; computing in "
        << name_of(start.precision) << start.device_note
        << "\nresult directory: " << start.output.string() << "\n";
    for (const std::string& rule :
         verification::broken_rules(start.config, facts_at_start(start))) {
        log << "the result will be INVALID: " << rule << "\n";
    }
    if (training::faults_are_built_in()) {
        log << "this program injects faults: "
            << training::describe_faults(training::faults_of_environment()) << "\n";
    }
    const std::string incomplete = verification::what_submission_lacks(start.config);
    if (!incomplete.empty()) log << "the result will be " << incomplete << "\n";
    log << std::flush;
}

/// The result directory with its logs is made later: the first rank tells standard error.
void build_model(const Start& start, int world_rank, std::optional<BaseModel>& model) {
    forget_peak_resident_bytes();  // of the ceiling's matrices, and of other repetitions
    const bool speaks = world_rank == 0;
    const std::unique_ptr<Logger> log = make_logger("rank 0", "");
    std::optional<TuningNote> note;
    if (speaks) note.emplace(device::tuning_of(*start.device), *log);
    model.emplace(start);
    if (speaks) note->finish(device::tuning_of(*start.device));
}

/// What must outlive MPI: after a failure MPI may still be working on the gradients.
struct RunSession {
    std::optional<Start> start;
    std::optional<BaseModel> model;
    std::unique_ptr<comm::GradientReducer> reducer;

    /// Which MPI knows nothing of.
    void drop_data() {
        model->drop_pictures();
        start->samples = {};
    }
};

void leave_stage(const Start& start, bool is_success, int world_rank, Logger& log) {
    if (start.samples.stage == nullptr) return;
    if (const std::int64_t lost = start.samples.stage->lost_copies(); lost > 0) {
        log.warn("rank {} read {} from their sources, as their staged copies were lost or damaged",
                 world_rank, counted(lost, "sample"));
    }
    start.samples.stage->leave(is_success);
}

struct Invocation {
    comm::MpiWorld& world;
    const RunRequest& request;
    std::ostream& out;
};

/// Of a program that can; no measurement of anything comes of it.
void expect_faults(comm::Communicator& everyone, Start& start) {
    comm::run_together(everyone, [&] {
        const plan::Layout& layout = start.controller.layout();
        training::check_faults(training::faults_of_environment(), layout.groups, layout.degree);
    });
    if (training::faults_are_built_in()) object_to_faults({{kFaultsFact, ""}}, start.samples);
}

/// One run of `series`. Behind one of which all went well MPI is done with the session.
RunEnd run_once(const Invocation& invocation, Series& series, std::list<RunSession>& sessions) {
    comm::MpiWorld& world = invocation.world;
    const Stopwatch since_start;
    RunSession& session = sessions.emplace_back();
    comm::StartUp start_up = world.start_up();
    Start& start = session.start.emplace(agree_on_start(invocation.request, start_up, series));
    expect_faults(start_up.everyone(), start);
    start.ceiling = find_ceiling(start, start_up.everyone());
    std::optional<BaseModel>& model = session.model;
    comm::run_together(start_up.everyone(), [&] { build_model(start, world.rank(), model); });
    start.environment = describe_environment(start, invocation.request.command_line);
    make_result_directory(start, start_up.everyone());
    std::unique_ptr<Logger> log;
    comm::run_together(start_up.everyone(), [&] { log = open_group_log(start); });
    if (world.rank() == 0) print_start(start, std::cerr);
    start.counters = find_counters(start);
    start.exit_ends_others = world.exit_would_end_others();
    RunEnd end;
    bool is_success = false;
    {
        const auto group = std::move(start_up).split(start.place.group, start.place.group_rank);
        JobController controller(start, world, since_start);
        const GroupOutcome outcome = run_group(start, *model, *group, session.reducer, *log);
        is_success = outcome.status.state == comm::GroupState::completed;
        leave_stage(start, is_success, world.rank(), *log);
        end = controller.finish(outcome, *log, invocation.out);
    }
    if (end.another && is_success) {
        sessions.pop_back();
    } else if (end.another) {
        session.drop_data();
    }
    return end;
}

/// All runs of run.repeat, as long as every rank is there. What ends a start ends them.
ExitCode run_series(const Invocation& invocation, Series series, std::list<RunSession>& sessions) {
    while (true) {
        try {
            const RunEnd end = run_once(invocation, series, sessions);
            if (!end.another) return end.code;
        } catch (const Error& error) {
            if (series.number > 1 && invocation.world.rank() == 0) {
                note_stop(
                    series.folder,
                    fmt::format("repetition {} could not start: {}", series.number, error.what()),
                    invocation.out);
            }
            throw;
        }
        ++series.number;
    }
}

}  // namespace

ExitCode run_benchmark(const RunRequest& request, std::ostream& out) {
    const StopSignals signals;
    const Series series;
    training::faults_of_environment();  // or throws, on all ranks alike
    std::list<RunSession> sessions;
    return in_world(request.command_line, [&](comm::MpiWorld& world) {
        return run_series({world, request, out}, series, sessions);
    });
}

}  // namespace hpcai::benchmark
