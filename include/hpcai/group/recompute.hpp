// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <hpcai/context/run_context.hpp>
#include <hpcai/group/model.hpp>
#include <hpcai/training/predict.hpp>

/// Recomputes parts of a finished run, possibly on another machine, to verify its result.
namespace hpcai::group {

/// Opens the device for one of `ranks` ranks of this process. It computes in `precision`, named as
/// in result.json, or in fp32 if the device lacks that.
context::Resources open_resources(const config::Config& config, const std::string& precision,
                                  const data::SampleSets& samples, int ranks);

/// A trained model of a result.
struct TrainedModel {
    std::filesystem::path weights;
    Edits edits;  // of the configured model
};

/// Returns the predictions of `samples` by `model`. One rank predicts them. Throws as
/// training::read_weights, morphs::apply_all and data::EvaluationSource.
training::Predictions predict_samples(const context::RunContext& context,
                                      const context::Resources& resources,
                                      const TrainedModel& model,
                                      std::shared_ptr<const data::SampleSet> samples);

struct StepRange {
    int group = 0;
    std::int64_t first = 0;  // steps done before; 0 or one of config::kept_steps()
    std::int64_t steps = 0;
};

/// Trains steps of a group again, from the seed or from the kept checkpoint of step `first`, on the
/// CPU, with a thread for each rank. Returns the leader's mean loss of each step. The parallel mode
/// must be `data`, without micro-batches. Throws the errors of data and training, and Error(data)
/// with the path if a file of the checkpoint is missing, damaged or of another run or step.
std::vector<double> train_again(const context::RunContext& context, const data::SampleSets& samples,
                                const std::string& precision, StepRange wanted);

}  // namespace hpcai::group
