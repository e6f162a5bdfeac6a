// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <ostream>
#include <thread>

#include <unistd.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/benchmark/run.hpp>
#include <hpcai/results/run_status.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct RunOptions {
    config::Sources config;
    std::string output;
};

ExitCode run(const RunOptions& options, const Context& context) {
    return benchmark::run_benchmark({options.config, options.output, context.command_line},
                                    context.out);
}

struct ResumeOptions {
    std::string directory;
    std::vector<std::string> overrides;
};

ExitCode resume(const ResumeOptions& options, const Context& context) {
    return benchmark::run_benchmark(
        {{{}, options.overrides}, {}, context.command_line, options.directory}, context.out);
}

ExitCode score(const benchmark::ScoreRequest& request, const Context& context) {
    return benchmark::score_run(request, context.command_line, context.out);
}

constexpr const char* kClearTerminal = "\x1b[H\x1b[2J";

struct StatusOptions {
    std::string directory;
    bool watch = false;
    double interval_seconds = 2;
};

/// Reads the status. If the run is ending, first waits at most 5 s for the end of its processes.
/// Thus a script that calls `status` immediately after mpirun gets the final exit code.
results::RunStatus read_settled_status(const std::string& directory) {
    constexpr double kMaxSeconds = 5;
    const Stopwatch watch;
    while (true) {
        results::RunStatus status = results::read_status(directory);
        if (!status.is_ending || watch.seconds() > kMaxSeconds) return status;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
}

ExitCode status(const StatusOptions& options, const Context& context) {
    const bool is_terminal = isatty(STDOUT_FILENO) == 1;
    std::ostream& out = context.out;
    while (true) {
        const results::RunStatus status = options.watch ? results::read_status(options.directory)
                                                        : read_settled_status(options.directory);
        if (options.watch && is_terminal) out << kClearTerminal;
        out << status.text << std::flush;
        if (!options.watch || status.is_final || !out.good()) return status.exit_code;
        std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_seconds));
    }
}

}  // namespace

void add_run_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"run",
         "Run the benchmark: train, evaluate the ensemble, score, write the result directory. "
         "Start it with mpirun or srun.",
         {"mpirun -np 4 hpcai500 run --config configs/quickstart.yaml",
          "mpirun -np 2 hpcai500 run --config configs/ucmerced.yaml --config mine.yaml --set "
          "training.precision=fp32 --output results/ucmerced"}},
        run);
    add_config_options(command, options.config, Presence::required);
    command.add_text("--output", options.output, "DIR",
                     "result directory, new or empty; default: run.output, else "
                     "results/<run.name>-<UTC time>");
}

void add_resume_command(Command parent) {
    const auto [command, options] =
        parent.add_command({"resume",
                            "Resume an interrupted run from its latest checkpoints, on the same "
                            "number of ranks. Start it with mpirun or srun.",
                            {"mpirun -np 4 hpcai500 resume results/quickstart",
                             "mpirun -np 64 --map-by ppr:4:node hpcai500 resume /scratch/run-17"}},
                           resume);

    command.add_argument("DIR", options.directory,
                         "result directory of a run or of several (run.repeat)");
    command.add_texts(
        "--set", options.overrides, "SECTION.KEY=VALUE",
        "change a key that has no effect on results, such as run.time_limit_seconds; repeatable");
}

void add_score_command(Command parent) {
    const auto [command, request] = parent.add_command(
        {"score",
         "Evaluate the ensemble of an interrupted run from its stored predictions. Needs no MPI.",
         {"hpcai500 score results/quickstart", "hpcai500 score /scratch/run-17 --allow-partial"}},
        score);
    command.add_argument("DIR", request.directory, "result directory of the run");
    command.add_flag("--allow-partial", request.allow_partial,
                     "leave out unfinished groups; the result is then PARTIAL");
}

void add_status_command(Command parent) {
    constexpr double kMaxSeconds = 86400;
    const auto [command, options] = parent.add_command(
        {"status",
         "Show the progress or the result of a run. Exits with the run's exit code, or 6 if it "
         "has not ended.",
         {"hpcai500 status results/quickstart",
          "hpcai500 status results/imagenet-4711 --watch --interval 10"}},
        status);
    command.add_argument("DIR", options.directory,
                         "result directory of a run or of several (run.repeat)");
    command.add_flag("--watch", options.watch, "repeat until the run has ended");
    command.add_number("--interval", options.interval_seconds, between(0.1, kMaxSeconds),
                       "seconds between two updates of --watch; default: 2");
}

}  // namespace hpcai::cli
