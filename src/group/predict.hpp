// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/graph/parameter_store.hpp>
#include <hpcai/group/model.hpp>
#include <hpcai/training/predict.hpp>

namespace hpcai::group {

struct Evaluation {
    training::Predictions predictions;  // of all samples on group rank 0; empty on other ranks
    data::BadSampleReport bad_samples;  // of this rank's share
};

/// The configured model with `edits`, and its parameters.
struct PredictingModel {
    graph::ParameterStore& store;
    const Edits& edits;
};

/// Predicts `samples` with the parameters of the whole model; each rank predicts one block of
/// samples. Collective in the group; a failure on one rank is thrown on all.
Evaluation predict(const context::RunContext& context, const context::Resources& resources,
                   const PredictingModel& model, std::shared_ptr<const data::SampleSet> samples,
                   comm::Communicator& group);

/// Returns the settings that `data` determines for one rank with `threads` host threads.
data::SourceSettings source_settings(const config::DataConfig& data, int threads);

}  // namespace hpcai::group
