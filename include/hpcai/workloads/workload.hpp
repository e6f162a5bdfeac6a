// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <hpcai/config/config.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/evaluation/statistics.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/workloads/evaluator.hpp>
#include <hpcai/workloads/inspector.hpp>

/// Tasks: how predictions are scored (docs/METRICS.md), combined, stored, checked and compared.
namespace hpcai::workloads {

/// Returns the group's folder, such as "groups/3/".
std::string group_prefix(int group);

/// Checks the stored predictions of the members and of the ensemble that combines them.
class PredictionCheck {
public:
    virtual ~PredictionCheck() = default;
    /// Scores the stored predictions of `group` and writes the scores to `result`. finish()
    /// combines the predictions of all groups that were added. Returns whether a value lies
    /// strictly between 0 and 1, so that another model with equal predictions is a copy.
    virtual bool add_member(int group, GroupResult& result) = 0;
    /// Combines the members, compares the result with the stored ensemble, and writes the
    /// ensemble's scores to `quality`, whose metric must be of the workload's kind.
    virtual void finish(QualityRecord& quality) = 0;
};

/// A result directory to check. The inspector and the configuration must outlive the check.
struct CheckedResult {
    const config::Config& config;
    std::int64_t samples = 0;  // test samples
    Inspector& inspector;
};

/// File names: `member` in groups/<m>/, the others in evaluation/.
struct PredictionFiles {
    std::string member;
    std::string ensemble;
    std::string labels;
};

/// How the quality of a second result compares with that of the first.
struct QualityComparison {
    evaluation::Judgement judgement = evaluation::Judgement::unclear;
    std::string why;  // the statistics in one line
};

/// Two results whose ensembles were scored with the same labels.
struct ComparedResults {
    const config::Config& config;  // of the first result
    std::filesystem::path first;   // folder evaluation/ of the first result
    std::filesystem::path second;  // of the second
};

/// The interface of a task.
struct Workload {
    config::Task task;
    MetricRecord metric;  // an empty record of the task's kind
    PredictionFiles files;
    std::unique_ptr<const Evaluator> (*make_evaluator)(const config::Config& config,
                                                       const data::SampleSets& samples);
    std::unique_ptr<PredictionCheck> (*make_check)(const CheckedResult& result);
    /// Compares two ensembles by a paired test. Throws Error(data) for files that do not match.
    QualityComparison (*compare)(const ComparedResults& results);
};

/// Returns the interface of the configured workload's task.
const Workload& workload_of(const config::WorkloadConfig& workload);

/// Makes the evaluator of the configured workload. `config` and `samples` must outlive it.
std::unique_ptr<const Evaluator> make_evaluator(const config::Config& config,
                                                const data::SampleSets& samples);

/// Returns the pairs of classes that the ensemble of a classifier confuses most, at most 10, from
/// the files in the folder `evaluation`. A class is named by its number and, if the classes have
/// different folders, the folder of its first sample. Empty for other tasks and for missing or
/// damaged files.
std::vector<ConfusionRecord> find_confusions(const config::WorkloadConfig& workload,
                                             const std::filesystem::path& evaluation);

/// Returns a quality record with the kind of `metric`; every number is missing for `reason`.
QualityRecord missing_quality(MetricRecord metric, const std::string& reason);

}  // namespace hpcai::workloads
