// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <ostream>
#include <system_error>

#include "commands.hpp"
#include "evaluate.hpp"

namespace hpcai::cli {
namespace {

/// An option with one file or more.
void add_files(CLI::App& command, const std::string& name, std::vector<std::string>& files,
               const std::string& meaning) {
    command.add_option(name, files, meaning)
        ->type_name("FILE")
        ->each([name](const std::string& file) {
            require(!file.empty(), ExitCode::usage, "evaluate: {}: expected a file, got none",
                    name);
        });
}

/// Of a finite decimal number.
std::optional<double> number_in(const std::string& text) {
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || rest != end || !std::isfinite(value)) return std::nullopt;
    return value;
}

/// Nothing for a number above 0.
std::string why_no_weight(std::string& text) {
    return number_in(text).value_or(0) > 0 ? ""
                                           : "expected a number above 0, got " + in_quotes(text);
}

/// An option with a number from 0 on and below 1.
void add_fraction(CLI::App& command, const std::string& name, std::optional<double>& target,
                  const std::string& meaning) {
    const auto read = [name, &target](const std::string& text) {
        target = number_in(text);
        require(target && *target >= 0 && *target < 1, ExitCode::usage,
                "evaluate: {}: expected a number from 0 to below 1, got {}", name, in_quotes(text));
    };
    command.add_option_function<std::string>(name, read, meaning)->type_name("X");
}

/// Refuses options of an ensemble that would have no effect.
void check_fusion(const EvaluateOptions& options, bool detection) {
    struct Option {
        const char* name;
        bool is_given;
        bool is_of_boxes;
    };
    const std::array given{Option{"--aggregation", !options.aggregation.empty(), false},
                           Option{"--weights", !options.weights.empty(), true},
                           Option{"--overlap", options.overlap.has_value(), true},
                           Option{"--lowest-score", options.lowest_score.has_value(), true}};
    const std::string files = detection ? "--detections" : "--predictions";
    const std::size_t count = detection ? options.detections.size() : options.predictions.size();
    for (const Option& option : given) {
        if (!option.is_given) continue;
        require(detection || !option.is_of_boxes, ExitCode::usage,
                "evaluate: {}: expected with --detections only", option.name);
        require(count > 1, ExitCode::usage,
                "evaluate: {}: expected with two files or more of {}, got one", option.name, files);
    }
}

ExitCode evaluate(const EvaluateOptions& options, std::ostream& out) {
    const bool detection = !options.annotations.empty() || !options.detections.empty();
    const bool classification = !options.labels.empty() || !options.predictions.empty();
    const bool complete = detection ? !options.annotations.empty() && !options.detections.empty()
                                    : !options.labels.empty() && !options.predictions.empty();
    require(detection != classification && complete, ExitCode::usage,
            "evaluate: expected --annotations with --detections, or --labels with --predictions");
    require(!detection || options.cells == 0, ExitCode::usage,
            "evaluate: --cells: expected with --predictions only");
    check_fusion(options, detection);
    const EvaluationReport report = detection           ? evaluate_detections(options)
                                    : options.cells > 0 ? evaluate_segmentation(options)
                                                        : evaluate_classification(options);
    out << (options.json ? json_text(report.json) : report.text);
    return ExitCode::ok;
}

}  // namespace

void add_evaluate_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<EvaluateOptions>();
    CLI::App& command = add_command(
        parent, {"evaluate",
                 "Compute the quality of predictions from files, of several as an ensemble.",
                 {"hpcai500 evaluate --annotations evaluation/annotations.json --detections "
                  "groups/0/detections.json groups/1/detections.json --aggregation wbf",
                  "hpcai500 evaluate --labels evaluation/labels.npy --predictions "
                  "groups/0/predictions.npy --json"}});
    add_text(command, "--annotations", options->annotations, "FILE",
             "labelled boxes of the test images, COCO's format");
    add_files(command, "--detections", options->detections,
              "each model's detections, COCO's results format");
    add_text(command, "--labels", options->labels, "FILE", "labels, npy, int32 (samples)");
    add_files(command, "--predictions", options->predictions,
              "each model's probabilities, npy, float32 (samples, classes)");
    add_integer(
        command, "--cells", [options](std::int64_t cells) { options->cells = cells; },
        {1, std::int64_t{1} << 31},
        "rows are cells, so many of a sample: mean IoU, as of workload.kind climate_segmentation");
    add_text(command, "--aggregation", options->aggregation, "NAME",
             "of detections wbf (the default) or nms, of predictions soft_vote (the default) or "
             "majority");
    command.add_option("--weights", options->weights, "of the models in wbf, 1 by default")
        ->type_name("X")
        ->check(CLI::Validator(why_no_weight, ""));
    add_fraction(command, "--overlap", options->overlap,
                 "intersection over union above which the models' boxes are one, as "
                 "detector.fusion_overlap of a run (0: the usual one, 0.55 of wbf, 0.5 of nms)");
    add_fraction(command, "--lowest-score", options->lowest_score,
                 "of a detection that takes part, as detector.score_threshold of a run (0.01)");
    add_json_flag(command, options->json);
    set_action(command, context, [options, &context] { return evaluate(*options, context.out); });
}

}  // namespace hpcai::cli
