// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <hpcai/base/units.hpp>
#include <hpcai/evaluation/ballot.hpp>
#include <hpcai/evaluation/segmentation.hpp>
#include <hpcai/verification/judge.hpp>

#include "evaluate.hpp"
#include "evaluate_files.hpp"

namespace hpcai::cli {
namespace {

using nlohmann::ordered_json;

std::string text_of(const std::optional<double>& number) {
    return number ? fmt::format("{:.4f}", *number) : "none";
}

ordered_json json_of(const std::optional<double>& number) {
    return number ? ordered_json(*number) : ordered_json(nullptr);
}

/// What the files say.
struct Quality {
    std::vector<std::optional<double>> members;
    std::optional<double> ensemble, pixel_accuracy;
    std::optional<evaluation::Interval> interval;
};

Quality judge(const EvaluateOptions& options, const PredictionFiles& files) {
    Quality quality;
    const auto counts_of = [&](std::span<const float> said) {
        return evaluation::count_cells(said, files.labels, files.classes);
    };
    evaluation::Ballot ballot(vote_of(options), files.classes);
    for (const storage::NpyArray& member : files.members) {
        quality.members.push_back(evaluation::mean_iou(counts_of(member.as<float>())));
        ballot.add(member.as<float>());
    }
    const std::vector<float> voted = ballot.result();
    const bool is_one = files.members.size() == 1;
    const std::span<const float> said = is_one ? files.members.front().as<float>() : voted;
    const evaluation::CellCounts counts = counts_of(said);
    quality.ensemble = evaluation::mean_iou(counts);
    quality.pixel_accuracy = evaluation::pixel_accuracy(counts);
    quality.interval =
        verification::cell_interval_95({said, files.labels, files.classes}, options.cells, nullptr);
    return quality;
}

}  // namespace

EvaluationReport evaluate_segmentation(const EvaluateOptions& options) {
    const PredictionFiles files = read_files(options);
    const auto rows = static_cast<std::int64_t>(files.labels.size());
    require(rows % options.cells == 0, ExitCode::data,
            "evaluate: --cells: expected a divisor of the {} labels, got {}", rows, options.cells);
    const Quality quality = judge(options, files);
    const std::string voters = voters_of(options);
    std::string text = fmt::format(
        "{} samples of {} cells, {} classes, {}\nquality {}  mean IoU, 95 % interval {} to {} "
        "(bootstrap over samples)\npixels  {}  of the cells are right\n",
        format_count(rows / options.cells), format_count(options.cells),
        format_count(files.classes), voters, text_of(quality.ensemble),
        quality.interval ? text_of(quality.interval->low) : "none",
        quality.interval ? text_of(quality.interval->high) : "none",
        text_of(quality.pixel_accuracy));
    ordered_json members = ordered_json::array();
    for (std::size_t index = 0; index < quality.members.size(); ++index) {
        members.push_back(
            {{"file", options.predictions[index]}, {"mean_iou", json_of(quality.members[index])}});
        if (quality.members.size() == 1) continue;
        text += fmt::format("member {:3}  {}  {}\n", index, text_of(quality.members[index]),
                            printable(options.predictions[index]));
    }
    return {text,
            {{"schema", "hpcai500-evaluate/1"},
             {"task", "climate_segmentation"},
             {"metric", "mean_iou"},
             {"samples", rows / options.cells},
             {"cells", options.cells},
             {"classes", files.classes},
             {"aggregation", aggregation_of(options)},
             {"quality", json_of(quality.ensemble)},
             {"confidence_interval",
              quality.interval ? ordered_json{quality.interval->low, quality.interval->high}
                               : ordered_json(nullptr)},
             {"pixel_accuracy", json_of(quality.pixel_accuracy)},
             {"members", members}}};
}

}  // namespace hpcai::cli
