// SPDX-License-Identifier: Apache-2.0
#include "evaluate_files.hpp"

#include <fmt/format.h>

#include <hpcai/evaluation/top_k.hpp>

#include "command.hpp"

namespace hpcai::cli {
namespace {

std::vector<std::int32_t> read_labels(const std::string& path) {
    const storage::NpyArray array = storage::read_npy(path);
    require(array.dtype() == tensor::DType::s32 && array.shape().rank() == 1, ExitCode::data,
            "{}: expected labels, int32 of one dimension, got {} {}", in_quotes(path),
            tensor::name_of(array.dtype()), tensor::to_string(array.shape()));
    const auto labels = array.as<std::int32_t>();
    return {labels.begin(), labels.end()};
}

/// (samples, classes) f32, as many samples as labels.
storage::NpyArray read_predictions(const std::string& path, std::size_t samples) {
    storage::NpyArray array = storage::read_npy(path);
    require(array.dtype() == tensor::DType::f32 && array.shape().rank() == 2 &&
                array.shape()[0] == static_cast<std::int64_t>(samples) && array.shape()[1] > 0,
            ExitCode::data, "{}: expected float32 of shape ({}, classes) as the labels, got {} {}",
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

std::string name_of_vote(const EvaluateOptions& options) {
    return options.aggregation.empty() ? "soft_vote" : options.aggregation;
}

}  // namespace

PredictionFiles read_files(const EvaluateOptions& options) {
    PredictionFiles files;
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

evaluation::Vote vote_of(const EvaluateOptions& options) {
    const std::string name = name_of_vote(options);
    require(name == "soft_vote" || name == "majority", ExitCode::usage,
            "evaluate: --aggregation: expected soft_vote or majority, got {}", in_quotes(name));
    return name == "majority" ? evaluation::Vote::majority : evaluation::Vote::soft;
}

std::string voters_of(const EvaluateOptions& options) {
    if (options.predictions.size() == 1) return "one model";
    return fmt::format("{} models by {}", options.predictions.size(), name_of_vote(options));
}

nlohmann::ordered_json aggregation_of(const EvaluateOptions& options) {
    if (options.predictions.size() == 1) return nullptr;
    return name_of_vote(options);
}

}  // namespace hpcai::cli
