// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <hpcai/base/text.hpp>
#include <hpcai/benchmark/report_files.hpp>
#include <hpcai/storage/file.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    std::string directory;
    std::string output;
};

ExitCode report(const Options& options, std::ostream& out) {
    if (options.output.empty()) {
        benchmark::renew_report_files(options.directory);
        out << "wrote report.html and mllog in " << printable(options.directory) << '\n';
        return ExitCode::ok;
    }
    const RunRecord record = benchmark::read_result(options.directory);
    const auto files = benchmark::render_report_files(options.directory, record);
    storage::write_file_durably(options.output, files.at("report.html"));
    out << "wrote " << printable(options.output) << '\n';
    return ExitCode::ok;
}

}  // namespace

void add_report_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent,
        {"report",
         "Make the page and the MLPerf logs of a result anew from its record and its steps.",
         {"hpcai500 report results/quickstart --output /tmp/quickstart.html",
          "hpcai500 report results/quickstart"}});
    add_text(command, "DIR", options->directory, "", "result directory of a run").required();
    add_text(command, "--output", options->output, "FILE",
             "write the page there and nothing into DIR");
    set_action(command, context, [options, &context] { return report(*options, context.out); });
}

}  // namespace hpcai::cli
