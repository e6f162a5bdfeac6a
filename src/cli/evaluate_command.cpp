// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <ostream>

#include <fmt/core.h>

#include "commands.hpp"
#include "evaluate.hpp"

namespace hpcai::cli {
namespace {

/// Rejects ensemble options without effect.
void reject_unused_options(const EvaluateOptions& options, bool detection) {
    struct Option {
        const char* name;
        bool is_given;
        bool is_for_boxes;
    };
    const std::array given{Option{"--aggregation", !options.aggregation.empty(), false},
                           Option{"--weights", !options.weights.empty(), true},
                           Option{"--overlap", options.overlap.has_value(), true},
                           Option{"--lowest-score", options.lowest_score.has_value(), true}};
    const std::string files = detection ? "--detections" : "--predictions";
    const std::size_t count = detection ? options.detections.size() : options.predictions.size();
    for (const Option& option : given) {
        if (!option.is_given) continue;
        require(detection || !option.is_for_boxes, ExitCode::usage,
                "evaluate: {}: expected with --detections only", option.name);
        require(count > 1, ExitCode::usage,
                "evaluate: {}: expected with two files or more of {}, got one", option.name, files);
    }
}

ExitCode evaluate(const EvaluateOptions& options, const Context& context) {
    const bool detection = !options.annotations.empty() || !options.detections.empty();
    const bool classification = !options.labels.empty() || !options.predictions.empty();
    const bool complete = detection ? !options.annotations.empty() && !options.detections.empty()
                                    : !options.labels.empty() && !options.predictions.empty();
    require(detection != classification && complete, ExitCode::usage,
            "evaluate: expected --annotations with --detections, or --labels with --predictions");
    require(!detection || options.cells == 0, ExitCode::usage,
            "evaluate: --cells: expected with --predictions only");
    reject_unused_options(options, detection);
    const EvaluationReport report = detection           ? evaluate_detections(options)
                                    : options.cells > 0 ? evaluate_segmentation(options)
                                                        : evaluate_classification(options);
    context.out << (options.json ? report.json : report.text);
    return ExitCode::ok;
}

}  // namespace

std::string number_text(const std::optional<double>& number) {
    return number ? fmt::format("{:.4f}", *number) : "none";
}

void add_evaluate_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"evaluate",
         "Compute the quality of prediction files, each alone and as an ensemble.",
         {"hpcai500 evaluate --annotations evaluation/annotations.json --detections "
          "groups/0/detections.json groups/1/detections.json --aggregation wbf",
          "hpcai500 evaluate --labels evaluation/labels.npy --predictions "
          "groups/0/predictions.npy --json"}},
        evaluate);
    command.add_text("--annotations", options.annotations, "FILE",
                     "labelled boxes of the test images, in COCO's format");
    command.add_files("--detections", options.detections,
                      "each model's detections, in COCO's results format");
    command.add_text("--labels", options.labels, "FILE", "labels (npy): int32, shape (samples)");
    command.add_files("--predictions", options.predictions,
                      "each model's probabilities (npy): float32, shape (samples, classes)");
    command.add_integer("--cells", options.cells, {1, std::int64_t{1} << 31},
                        "cells per sample for segmentation, where rows of the files are cells and "
                        "the quality is the mean IoU");
    command.add_text(
        "--aggregation", options.aggregation, "NAME",
        "wbf (default) or nms for detections, soft_vote (default) or majority for predictions");
    command.add_numbers("--weights", options.weights, above_zero(),
                        "weights of the models in wbf; default: 1");
    command.add_number("--overlap", options.overlap, below_one(),
                       "IoU above which boxes are merged, as detector.fusion_overlap; 0 is 0.55 "
                       "for wbf and 0.5 for nms; default: 0");
    command.add_number("--lowest-score", options.lowest_score, below_one(),
                       "minimum score of a detection, as detector.score_threshold; default: 0.01");
    add_json_flag(command, options.json);
}

}  // namespace hpcai::cli
