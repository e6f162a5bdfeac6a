// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include <fmt/format.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/evaluation/ballot.hpp>
#include <hpcai/evaluation/top_k.hpp>
#include <hpcai/storage/npy.hpp>

#include "command.hpp"
#include "evaluate.hpp"

namespace hpcai::cli {
namespace {

using evaluation::TopK;
using nlohmann::ordered_json;

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

evaluation::Vote vote_named(const std::string& name) {
    require(name.empty() || name == "soft_vote" || name == "majority", ExitCode::usage,
            "evaluate: --aggregation: expected soft_vote or majority, got {}", in_quotes(name));
    return name == "majority" ? evaluation::Vote::majority : evaluation::Vote::soft;
}

/// What the files say.
struct Tally {
    std::vector<TopK> members;
    TopK ensemble;
    std::int64_t classes = 0;
};

Tally count(const EvaluateOptions& options, const std::vector<std::int32_t>& labels) {
    const evaluation::Vote vote = vote_named(options.aggregation);
    Tally tally;
    std::optional<evaluation::Ballot> ballot;
    for (const std::string& path : options.predictions) {
        const storage::NpyArray array = read_predictions(path, labels.size());
        const std::int64_t classes = array.shape()[1];
        if (!ballot) {
            tally.classes = classes;
            check_labels(labels, classes, options.labels);
            ballot.emplace(vote, classes);
        }
        require(classes == tally.classes, ExitCode::data, "{}: expected {} classes as {}, got {}",
                in_quotes(path), tally.classes, in_quotes(options.predictions.front()), classes);
        tally.members.push_back(evaluation::top_k(array.as<float>(), labels, classes));
        ballot->add(array.as<float>());
    }
    tally.ensemble = tally.members.size() == 1
                         ? tally.members.front()
                         : evaluation::top_k(ballot->result(), labels, tally.classes);
    return tally;
}

std::string share_text(std::int64_t correct, std::int64_t samples) {
    const auto share = evaluation::accuracy(correct, samples);
    return share ? fmt::format("{:.4f}", *share) : "none";
}

ordered_json share_json(std::int64_t correct, std::int64_t samples) {
    const auto share = evaluation::accuracy(correct, samples);
    return share ? ordered_json(*share) : ordered_json(nullptr);
}

std::string text_of(const EvaluateOptions& options, const Tally& tally,
                    const std::string& aggregation) {
    const TopK& best = tally.ensemble;
    const evaluation::Interval interval =
        evaluation::wilson_interval_95(best.correct_1, best.samples);
    std::string text = fmt::format(
        "{} samples, {} classes, {}\nquality {}  Top-1, 95 % interval {:.4f} to {:.4f} (Wilson)\n"
        "top_5   {}\n",
        format_count(best.samples), format_count(tally.classes),
        tally.members.size() == 1
            ? "one model"
            : fmt::format("{} models by {}", tally.members.size(), aggregation),
        share_text(best.correct_1, best.samples), interval.low, interval.high,
        share_text(best.correct_5, best.samples));
    if (tally.members.size() == 1) return text;
    text += "\nmember   top_1   top_5  file\n";
    for (std::size_t index = 0; index < tally.members.size(); ++index) {
        const TopK& one = tally.members[index];
        text += fmt::format(
            "{:6}  {:>6}  {:>6}  {}\n", index, share_text(one.correct_1, one.samples),
            share_text(one.correct_5, one.samples), printable(options.predictions[index]));
    }
    return text;
}

ordered_json json_of(const EvaluateOptions& options, const Tally& tally,
                     const std::string& aggregation) {
    const TopK& best = tally.ensemble;
    const evaluation::Interval interval =
        evaluation::wilson_interval_95(best.correct_1, best.samples);
    ordered_json members = ordered_json::array();
    for (std::size_t index = 0; index < tally.members.size(); ++index) {
        const TopK& one = tally.members[index];
        members.push_back({{"file", options.predictions[index]},
                           {"top_1", share_json(one.correct_1, one.samples)},
                           {"top_5", share_json(one.correct_5, one.samples)}});
    }
    return {{"schema", "hpcai500-evaluate/1"},
            {"task", "image_classification"},
            {"metric", "top_1"},
            {"samples", best.samples},
            {"classes", tally.classes},
            {"aggregation",
             tally.members.size() == 1 ? ordered_json(nullptr) : ordered_json(aggregation)},
            {"quality", share_json(best.correct_1, best.samples)},
            {"confidence_interval", {interval.low, interval.high}},
            {"top_5", share_json(best.correct_5, best.samples)},
            {"members", members}};
}

}  // namespace

EvaluationReport evaluate_classification(const EvaluateOptions& options) {
    const Tally tally = count(options, read_labels(options.labels));
    const std::string aggregation = options.aggregation.empty() ? "soft_vote" : options.aggregation;
    return {text_of(options, tally, aggregation), json_of(options, tally, aggregation)};
}

}  // namespace hpcai::cli
