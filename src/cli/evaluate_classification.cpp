// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/evaluation/ballot.hpp>
#include <hpcai/evaluation/top_k.hpp>
#include <hpcai/storage/npy.hpp>

#include "command.hpp"
#include "evaluate.hpp"
#include "evaluate_files.hpp"

namespace hpcai::cli {
namespace {

using evaluation::TopK;
using nlohmann::ordered_json;

/// What the files say.
struct Tally {
    std::vector<TopK> members;
    TopK ensemble;
    std::int64_t classes = 0;
};

Tally count(const EvaluateOptions& options) {
    const evaluation::Vote vote = vote_of(options);
    const PredictionFiles files = read_files(options);
    Tally tally;
    tally.classes = files.classes;
    evaluation::Ballot ballot(vote, files.classes);
    for (const storage::NpyArray& member : files.members) {
        tally.members.push_back(evaluation::top_k(member.as<float>(), files.labels, files.classes));
        ballot.add(member.as<float>());
    }
    tally.ensemble = tally.members.size() == 1
                         ? tally.members.front()
                         : evaluation::top_k(ballot.result(), files.labels, files.classes);
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

std::string text_of(const EvaluateOptions& options, const Tally& tally) {
    const TopK& best = tally.ensemble;
    const evaluation::Interval interval =
        evaluation::wilson_interval_95(best.correct_1, best.samples);
    std::string text = fmt::format(
        "{} samples, {} classes, {}\nquality {}  Top-1, 95 % interval {:.4f} to {:.4f} (Wilson)\n"
        "top_5   {}\n",
        format_count(best.samples), format_count(tally.classes), voters_of(options),
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

ordered_json json_of(const EvaluateOptions& options, const Tally& tally) {
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
            {"aggregation", aggregation_of(options)},
            {"quality", share_json(best.correct_1, best.samples)},
            {"confidence_interval", {interval.low, interval.high}},
            {"top_5", share_json(best.correct_5, best.samples)},
            {"members", members}};
}

}  // namespace

EvaluationReport evaluate_classification(const EvaluateOptions& options) {
    const Tally tally = count(options);
    return {text_of(options, tally), json_of(options, tally)};
}

}  // namespace hpcai::cli
