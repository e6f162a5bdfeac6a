// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/evaluation/ensemble.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/npy.hpp>
#include <hpcai/workloads/probability_evaluator.hpp>

namespace hpcai::workloads {

void require_array(const storage::NpyArray& array, tensor::DType dtype, const tensor::Shape& shape,
                   const std::string& name) {
    require(array.dtype() == dtype && array.shape() == shape, ExitCode::data,
            "{}has {} {}; must have {} {}", name, tensor::name_of(array.dtype()),
            tensor::to_string(array.shape()), tensor::name_of(dtype), tensor::to_string(shape));
}

ComparedProbabilities read_probabilities(const ComparedResults& results, std::int64_t classes,
                                         std::int64_t rows_per_sample) {
    ComparedProbabilities all{storage::read_npy(results.first / kProbabilityFiles.labels),
                              storage::read_npy(results.first / kProbabilityFiles.ensemble),
                              storage::read_npy(results.second / kProbabilityFiles.ensemble)};
    const std::int64_t rows = all.labels.shape().rank() == 1 ? all.labels.shape()[0] : 0;
    require_array(all.labels, tensor::DType::s32, {rows}, kProbabilityFiles.labels + ": ");
    require(rows > 0 && rows % rows_per_sample == 0, ExitCode::data,
            "{}: has {} rows; must have {} per sample", kProbabilityFiles.labels, rows,
            rows_per_sample);
    for (const storage::NpyArray* values : {&all.first, &all.second}) {
        require_array(*values, tensor::DType::f32, {rows, classes},
                      kProbabilityFiles.ensemble + ": ");
    }
    return all;
}

ProbabilityEvaluator::ProbabilityEvaluator(const config::Config& config,
                                           const data::SampleSets& samples, ProbabilityTask task)
    : config_(config), samples_(samples), task_(std::move(task)) {}

std::int64_t ProbabilityEvaluator::outputs_per_sample() const {
    return task_.rows_per_sample() * task_.classes;
}

void ProbabilityEvaluator::score(const MemberPredictions& member, GroupResult& result) const {
    const std::vector<std::int32_t> labels = labels_of(member.validation.labels);
    task_.score_member({member.validation.outputs, labels, task_.classes}, result);
}

void ProbabilityEvaluator::store(const training::Predictions& predictions,
                                 const std::filesystem::path& directory) const {
    storage::write_npy(directory / kProbabilityFiles.member,
                       std::span<const float>(predictions.outputs),
                       task_.shape(std::ssize(predictions.labels)));
}

void ProbabilityEvaluator::load(const std::filesystem::path& directory,
                                MemberPredictions& member) const {
    const auto path = directory / kProbabilityFiles.member;
    const storage::NpyArray stored = storage::read_npy(path);
    require_array(stored, tensor::DType::f32, task_.shape(std::ssize(member.validation.labels)),
                  "'" + path.string() + "': ");
    const auto values = stored.as<float>();
    member.validation.outputs.assign(values.begin(), values.end());
}

EnsemblePredictions ProbabilityEvaluator::combine(const MemberPredictions& member,
                                                  comm::Communicator& leaders,
                                                  QualityRecord& quality) const {
    const std::vector<float>& outputs = member.validation.outputs;
    const auto vote = [&](evaluation::Vote kind) {
        return evaluation::ensemble_vote(leaders, kind, outputs, task_.classes);
    };
    std::vector<float> soft = vote(evaluation::Vote::soft);
    std::vector<float> majority = vote(evaluation::Vote::majority);
    EnsemblePredictions ensemble;
    ensemble.labels = labels_of(member.validation.labels);
    const bool uses_majority = config_.bagging.aggregation == config::Aggregation::majority;
    if (leaders.rank() == 0) {
        task_.score_vote({{soft, ensemble.labels, task_.classes},
                          {majority, ensemble.labels, task_.classes},
                          uses_majority},
                         quality);
    }
    ensemble.probabilities = uses_majority ? std::move(majority) : std::move(soft);
    add_quality(member, leaders, quality);
    return ensemble;
}

void ProbabilityEvaluator::store(const EnsemblePredictions& ensemble,
                                 const std::filesystem::path& directory) const {
    const std::int64_t samples = samples_.validation->samples();
    storage::write_npy(directory / kProbabilityFiles.ensemble,
                       std::span<const float>(ensemble.probabilities), task_.shape(samples));
    storage::write_npy(directory / kProbabilityFiles.labels,
                       std::span<const std::int32_t>(ensemble.labels), task_.label_shape(samples));
    storage::write_file_durably(directory / "samples.txt", sample_names());
}

std::string ProbabilityEvaluator::sample_names() const {
    std::string names;
    for (std::int64_t sample = 0; sample < samples_.validation->samples(); ++sample) {
        names += samples_.validation->name(static_cast<std::uint32_t>(sample)) + "\n";
    }
    return names;
}

void ProbabilityEvaluator::check_samples(std::span<const std::int32_t> labels,
                                         Inspector& inspector) const {
    const std::string names = "evaluation/samples.txt";
    if (const auto text = inspector.read_text(names))
        inspector.compare_lines(names, *text, sample_names());
    const std::string name = "evaluation/" + kProbabilityFiles.labels;
    inspector.attempt(name, [&] {
        const std::vector<std::int32_t> expected = labels_of(labels);
        const storage::NpyArray stored = storage::read_npy(inspector.checked_path(name));
        require_array(stored, tensor::DType::s32, {std::ssize(expected)});
        const auto [is, must_be] = std::ranges::mismatch(stored.as<std::int32_t>(), expected);
        if (must_be == expected.end()) return;
        inspector.report(name, "label {} is {}; must be {}, according to the test data",
                         must_be - expected.begin(), *is, *must_be);
    });
}

std::string ProbabilityEvaluator::difference(const MemberPredictions& stored,
                                             const MemberPredictions& again,
                                             double tolerance) const {
    constexpr double kOutliers = 0.01;  // share of rows where rounding may exceed `tolerance`
    const std::vector<float>& values = stored.validation.outputs;
    const auto classes = static_cast<std::size_t>(task_.classes);
    std::size_t rows = 0;
    for (std::size_t index = 0; index < values.size(); ++index) {
        const float is = values[index], expected = again.validation.outputs.at(index);
        if (std::isnan(is) ? std::isnan(expected) : std::abs(is - expected) <= tolerance) continue;
        const std::size_t row = index / classes;
        if (static_cast<double>(++rows * classes) > kOutliers * static_cast<double>(values.size()))
            return fmt::format("probability of class {} in row {} is {}; must be {} within {}",
                               index % classes, row, is, expected, tolerance);
        index = (row + 1) * classes - 1;  // the last of this row
    }
    return "";
}

}  // namespace hpcai::workloads
