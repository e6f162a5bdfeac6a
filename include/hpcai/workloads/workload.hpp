// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <hpcai/config/config.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/evaluation/statistics.hpp>
#include <hpcai/workloads/evaluator.hpp>
#include <hpcai/workloads/prediction_check.hpp>

/// The tasks of the benchmark: what predictions are worth, and how they are combined, stored,
/// checked and compared. Metrics are those of docs/METRICS.md.
namespace hpcai::workloads {

/// Files that hold predictions, by their names in groups/<m>/ and in evaluation/.
struct PredictionFiles {
    std::string member;
    std::string ensemble;
    std::string labels;
};

/// What can be said of the quality of a second result against that of a first.
struct QualityComparison {
    evaluation::Judgement judgement = evaluation::Judgement::unclear;
    std::string why;  // the statistics, in a line
};

/// Two results whose ensembles were judged by the same labels, by their directories.
struct ComparedResults {
    const config::Config& config;  // the first's
    std::filesystem::path first;
    std::filesystem::path second;

    std::filesystem::path file_of_first(const std::string& name) const {
        return first / "evaluation" / name;
    }
    std::filesystem::path file_of_second(const std::string& name) const {
        return second / "evaluation" / name;
    }
};

/// All that the program knows of a task.
struct Workload {
    config::Task task;
    MetricRecord metric;  // without numbers
    PredictionFiles files;
    std::unique_ptr<const Evaluator> (*make_evaluator)(const config::Config& config,
                                                       const data::SampleSets& samples);
    std::unique_ptr<PredictionCheck> (*make_check)(const CheckedResult& result);
    /// Tells the qualities of two ensembles apart by a paired test. Throws Error(data) for files
    /// that do not fit.
    QualityComparison (*compare)(const ComparedResults& results);
};

/// Returns the task of a kind of workload.
const Workload& workload_of(const config::WorkloadConfig& workload);

/// Makes what evaluates the configured workload on these samples. Both outlive it.
std::unique_ptr<const Evaluator> make_evaluator(const config::Config& config,
                                                const data::SampleSets& samples);

/// Returns a quality by `metric` in which each number is missing for the same reason.
QualityRecord no_quality(MetricRecord metric, const std::string& reason);

}  // namespace hpcai::workloads
