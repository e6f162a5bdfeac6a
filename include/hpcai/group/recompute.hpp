// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <hpcai/context/run_context.hpp>
#include <hpcai/training/predict.hpp>

/// Recomputes parts of a finished run, possibly on another machine, to verify its result.
namespace hpcai::group {

/// Opens the device for one of `ranks` ranks of this process. It computes in `precision`, named as
/// in result.json, or in fp32 if the device lacks that.
context::Resources open_resources(const config::Config& config, const std::string& precision,
                                  const data::SampleSets& samples, int ranks);

/// Returns the predictions of the test samples by the model in the file `weights`. One rank
/// predicts them. Throws as training::read_weights and data::EvaluationSource.
training::Predictions predict_test_samples(const context::RunContext& context,
                                           const context::Resources& resources,
                                           const std::filesystem::path& weights);

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
