// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>
#include <span>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/evaluation/ballot.hpp>
#include <hpcai/evaluation/segmentation.hpp>
#include <hpcai/evaluation/top_k.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/storage/npy.hpp>
#include <hpcai/workloads/probabilities.hpp>

#include "command.hpp"
#include "evaluate.hpp"

/// Quality of files of labels and probabilities.
namespace hpcai::cli {
namespace {

using evaluation::TopK;
using nlohmann::ordered_json;
using records::number_or_null;

struct PredictionFiles {
    std::string aggregation = "soft_vote";
    std::vector<std::int32_t> labels;        // (samples)
    std::vector<storage::NpyArray> members;  // f32 (samples, classes)
    std::int64_t classes = 0;
};

std::vector<std::int32_t> read_labels(const std::string& path) {
    const storage::NpyArray array = storage::read_npy(path);
    require(array.dtype() == tensor::DType::s32 && array.shape().rank() == 1, ExitCode::data,
            "{}: expected labels, int32 of one dimension, got {} {}", in_quotes(path),
            tensor::name_of(array.dtype()), tensor::to_string(array.shape()));
    const auto labels = array.as<std::int32_t>();
    return {labels.begin(), labels.end()};
}

/// Returns f32 probabilities of shape (samples, classes), with one sample per label.
storage::NpyArray read_predictions(const std::string& path, std::size_t samples) {
    storage::NpyArray array = storage::read_npy(path);
    require(array.dtype() == tensor::DType::f32 && array.shape().rank() == 2 &&
                array.shape()[0] == static_cast<std::int64_t>(samples) && array.shape()[1] > 0,
            ExitCode::data, "{}: expected float32 of shape ({}, classes) for the labels, got {} {}",
            in_quotes(path), samples, tensor::name_of(array.dtype()),
            tensor::to_string(array.shape()));
    return array;
}

void check_labels(const std::vector<std::int32_t>& labels, std::int64_t classes,
                  const std::string& path) {
    for (std::size_t index = 0; index < labels.size(); ++index) {
        const std::int32_t label = labels[index];
        require(label >= evaluation::kPaddingLabel && label < classes, ExitCode::data,
                "{}: label {} of sample {}: expected {} (not counted) to {}", in_quotes(path),
                label, index, evaluation::kPaddingLabel, classes - 1);
    }
}

PredictionFiles read_files(const EvaluateOptions& options) {
    PredictionFiles files;
    if (!options.aggregation.empty()) files.aggregation = options.aggregation;
    require(files.aggregation == "soft_vote" || files.aggregation == "majority", ExitCode::usage,
            "evaluate: --aggregation: expected soft_vote or majority, got {}",
            in_quotes(files.aggregation));
    files.labels = read_labels(options.labels);
    for (const std::string& path : options.predictions) {
        files.members.push_back(read_predictions(path, files.labels.size()));
        const std::int64_t classes = files.members.back().shape()[1];
        if (files.members.size() == 1) {
            files.classes = classes;
            check_labels(files.labels, classes, options.labels);
        }
        require(classes == files.classes, ExitCode::data, "{}: expected {} classes as {}, got {}",
                in_quotes(path), files.classes, in_quotes(options.predictions.front()), classes);
    }
    return files;
}

/// Returns "one model" or "3 models by soft_vote".
std::string models_text(const PredictionFiles& files) {
    return files.members.size() == 1
               ? "one model"
               : fmt::format("{} models by {}", files.members.size(), files.aggregation);
}

/// Returns the aggregation, or null for one model.
ordered_json aggregation_json(const PredictionFiles& files) {
    return files.members.size() == 1 ? ordered_json(nullptr) : ordered_json(files.aggregation);
}

/// Returns the vote of all models; with one model, its probabilities.
std::vector<float> vote_in(const PredictionFiles& files) {
    evaluation::Ballot ballot(
        files.aggregation == "majority" ? evaluation::Vote::majority : evaluation::Vote::soft,
        files.classes);
    for (const storage::NpyArray& member : files.members) ballot.add(member.as<float>());
    return ballot.result();
}

struct Accuracies {
    std::optional<double> top_1, top_5;
};

Accuracies accuracies_of(const TopK& hits) {
    return {evaluation::accuracy(hits.correct_1, hits.samples),
            evaluation::accuracy(hits.correct_5, hits.samples)};
}

}  // namespace

EvaluationReport evaluate_classification(const EvaluateOptions& options) {
    const PredictionFiles files = read_files(options);
    const auto hits_of = [&](std::span<const float> probabilities) {
        return evaluation::top_k(probabilities, files.labels, files.classes);
    };
    const TopK ensemble = hits_of(vote_in(files));
    const Accuracies quality = accuracies_of(ensemble);
    const evaluation::Interval interval =
        evaluation::wilson_interval_95(ensemble.correct_1, ensemble.samples);
    std::string text = fmt::format(
        "{} samples, {} classes, {}\nquality {}  Top-1, 95 % interval {:.4f} to {:.4f} (Wilson)\n"
        "top_5   {}\n",
        format_count(ensemble.samples), format_count(files.classes), models_text(files),
        number_text(quality.top_1), interval.low, interval.high, number_text(quality.top_5));
    if (files.members.size() > 1) text += "\nmember   top_1   top_5  file\n";
    ordered_json members = ordered_json::array();
    for (std::size_t index = 0; index < files.members.size(); ++index) {
        const Accuracies member = accuracies_of(hits_of(files.members[index].as<float>()));
        const std::string& file = options.predictions[index];
        members.push_back({{"file", file},
                           {"top_1", number_or_null({member.top_1, ""})},
                           {"top_5", number_or_null({member.top_5, ""})}});
        if (files.members.size() == 1) continue;
        text += fmt::format("{:6}  {:>6}  {:>6}  {}\n", index, number_text(member.top_1),
                            number_text(member.top_5), printable(file));
    }
    return {text, json_text({{"schema", "hpcai500-evaluate/1"},
                             {"task", "image_classification"},
                             {"metric", "top_1"},
                             {"samples", ensemble.samples},
                             {"classes", files.classes},
                             {"aggregation", aggregation_json(files)},
                             {"quality", number_or_null({quality.top_1, ""})},
                             {"confidence_interval", {interval.low, interval.high}},
                             {"top_5", number_or_null({quality.top_5, ""})},
                             {"members", members}})};
}

EvaluationReport evaluate_segmentation(const EvaluateOptions& options) {
    const PredictionFiles files = read_files(options);
    const auto rows = static_cast<std::int64_t>(files.labels.size());
    require(rows % options.cells == 0, ExitCode::data,
            "evaluate: --cells: expected a divisor of the {} labels, got {}", rows, options.cells);
    const auto count = [&](std::span<const float> probabilities) {
        return evaluation::count_cells(probabilities, files.labels, files.classes);
    };
    const std::vector<float> voted = vote_in(files);
    const evaluation::CellCounts counts = count(voted);
    const std::optional<double> quality = evaluation::mean_iou(counts);
    const std::optional<double> pixel_accuracy = evaluation::pixel_accuracy(counts);
    const std::optional<evaluation::Interval> interval =
        workloads::cell_interval_95({voted, files.labels, files.classes}, options.cells, nullptr);
    std::string text = fmt::format(
        "{} samples of {} cells, {} classes, {}\nquality {}  mean IoU, 95 % interval {} to {} "
        "(bootstrap over samples)\npixels  {}  of the cells are correct\n",
        format_count(rows / options.cells), format_count(options.cells),
        format_count(files.classes), models_text(files), number_text(quality),
        interval ? number_text(interval->low) : "none",
        interval ? number_text(interval->high) : "none", number_text(pixel_accuracy));
    ordered_json members = ordered_json::array();
    for (std::size_t index = 0; index < files.members.size(); ++index) {
        const auto member = evaluation::mean_iou(count(files.members[index].as<float>()));
        const std::string& file = options.predictions[index];
        members.push_back({{"file", file}, {"mean_iou", number_or_null({member, ""})}});
        if (files.members.size() == 1) continue;
        text += fmt::format("member {:3}  {}  {}\n", index, number_text(member), printable(file));
    }
    return {
        text,
        json_text({{"schema", "hpcai500-evaluate/1"},
                   {"task", "climate_segmentation"},
                   {"metric", "mean_iou"},
                   {"samples", rows / options.cells},
                   {"cells", options.cells},
                   {"classes", files.classes},
                   {"aggregation", aggregation_json(files)},
                   {"quality", number_or_null({quality, ""})},
                   {"confidence_interval",
                    interval ? ordered_json{interval->low, interval->high} : ordered_json(nullptr)},
                   {"pixel_accuracy", number_or_null({pixel_accuracy, ""})},
                   {"members", members}})};
}

}  // namespace hpcai::cli
