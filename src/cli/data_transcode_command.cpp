// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <memory>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/data/transcode.hpp>

#include "climate_survey.hpp"
#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    std::string input;
    std::string output;
    std::string statistics_from;
    data::TranscodeOptions set;
    int threads = 0;
};

constexpr std::array<std::pair<const char*, tensor::DType>, 3> kPrecisions{
    {{"fp32", tensor::DType::f32}, {"fp16", tensor::DType::f16}, {"bf16", tensor::DType::bf16}}};

ExitCode transcode(const Options& options, std::ostream& out) {
    data::TranscodeOptions set = options.set;
    set.files = data::climate_files_at(options.input);
    set.output = options.output;
    set.statistics_from = options.statistics_from;
    set.threads = threads_or_all(options.threads);
    const data::TranscodeReport report = data::transcode(set);
    out << fmt::format("{}: {} records, {}; {} bad samples skipped, {} boxes dropped\n",
                       printable(options.output), format_count(report.samples),
                       format_bytes(report.bytes), format_count(report.skipped_samples),
                       format_count(report.dropped_boxes));
    return ExitCode::ok;
}

void add_precision(CLI::App& command, tensor::DType& dtype) {
    const auto store = [&dtype](const std::string& given) {
        for (const auto& [name, value] : kPrecisions) {
            if (given != name) continue;
            dtype = value;
            return;
        }
        throw Error(ExitCode::usage,
                    fmt::format("data transcode: --precision: expected fp32, fp16 or bf16, got {}",
                                in_quotes(given)));
    };
    command
        .add_option_function<std::string>("--precision", store,
                                          "of a record: fp32, fp16 or bf16 (fp16)")
        ->type_name("NAME");
}

}  // namespace

void add_data_transcode_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent,
        {"transcode",
         "Convert ExtremeWeather HDF5 files to normalized records, one block of memory a sample, "
         "which training maps instead of unpacking chunks.",
         {"hpcai500 data transcode /data/extreme_weather/train --output train-records",
          "hpcai500 data transcode climo_1984.h5 --output test-records --statistics-from "
          "train-records"}});
    add_text(command, "PATH", options->input, "", "HDF5 file, or folder of such files").required();
    add_text(command, "--output", options->output, "DIR", "new or empty folder").required();
    add_text(command, "--statistics-from", options->statistics_from, "DIR",
             "records whose mean and deviation are used, as a test set uses the training set's");
    add_precision(command, options->set.dtype);
    add_box_order(command, options->set.source);
    command.add_flag("--skip-bad-samples", options->set.skip_bad_samples,
                     "leave out samples with values that are not finite");
    add_threads(command, options->threads);
    set_action(command, context, [options, &context] { return transcode(*options, context.out); });
}

}  // namespace hpcai::cli
