// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <memory>
#include <ostream>
#include <thread>

#include <unistd.h>

#include <hpcai/benchmark/run_status.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

constexpr const char* kClearTerminal = "\x1b[H\x1b[2J";

struct Options {
    std::string directory;
    bool watch = false;
    double interval_seconds = 2;
};

ExitCode status(const Options& options, std::ostream& out) {
    const bool is_terminal = isatty(STDOUT_FILENO) == 1;
    while (true) {
        const benchmark::RunStatus status = benchmark::read_status(options.directory);
        if (options.watch && is_terminal) out << kClearTerminal;
        out << status.text << std::flush;
        if (!options.watch || status.is_final || !out.good()) return status.exit_code;
        std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_seconds));
    }
}

}  // namespace

void add_status_command(CLI::App& parent, Context& context) {
    constexpr double kLongestSeconds = 86400;
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent, {"status",
                 "Say by its files what became of a run, or how far it is, and exit with its "
                 "verdict's code.",
                 {"hpcai500 status results/quickstart",
                  "hpcai500 status results/imagenet-4711 --watch --interval 10"}});
    add_text(command, "DIR", options->directory, "",
             "result directory of a run or of several (run.repeat)")
        .required();
    command.add_flag("--watch", options->watch, "say it again until there is a result");
    add_number_within(
        command, "--interval", [options](double seconds) { options->interval_seconds = seconds; },
        {0.1, kLongestSeconds}, "seconds between two looks of --watch; default: 2");
    set_action(command, context, [options, &context] { return status(*options, context.out); });
}

}  // namespace hpcai::cli
