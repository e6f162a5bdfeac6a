// SPDX-License-Identifier: Apache-2.0
#include "learning_curve.hpp"

#include <hpcai/workloads/workload.hpp>

#include "predict.hpp"

namespace hpcai::group {

void evaluate_between(const BetweenEpochs& between, int epochs_done, GroupRecord& record) {
    const auto& [context, resources, model, group, trainer, clock, steps] = between;
    const int every = context.config.run.evaluate_epochs;
    const bool is_last = epochs_done == context.config.workload.epochs;
    if (every == 0 || epochs_done % every != 0 || is_last) return;
    clock.stop();
    graph::ParameterStore& store = model.store();
    const std::vector<float> statistics = store.read(store.statistics());
    trainer.average_statistics();
    const auto collected = model.collected(group);
    Evaluation evaluation = predict(context, resources, collected ? *collected : store,
                                    resources.samples.validation, group);
    store.write(statistics, store.statistics());
    if (group.rank() == 0) {
        GroupResult judged;
        workloads::make_evaluator(context.config, resources.samples)
            ->judge({.validation = std::move(evaluation.predictions)}, judged);
        if (judged.quality.value) {
            record.quality_by_epoch.push_back(
                {epochs_done, steps.steps().back().end_seconds, *judged.quality.value});
        }
    }
    group.barrier();  // or the others would wait for the leader on their clocks
    clock.resume();
}

void end_learning_curve(const context::RunContext& context, GroupResult& result) {
    if (context.config.run.evaluate_epochs == 0 || !result.quality.value) return;
    result.record.quality_by_epoch.push_back({context.config.workload.epochs,
                                              result.record.training_seconds.value.value_or(0),
                                              *result.quality.value});
}

}  // namespace hpcai::group
