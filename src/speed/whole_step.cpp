// SPDX-License-Identifier: Apache-2.0
#include "whole_step.hpp"

#include <hpcai/graph/fuse_for.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/training/initialize.hpp>

namespace hpcai::speed {
namespace {

graph::NetworkOptions options_of(const device::Precision& precision) {
    return {.compute = precision.compute, .tf32 = precision.tf32, .int8 = precision.int8};
}

}  // namespace

WholeStep::WholeStep(const Setup& setup)
    : graph_(models::make_model(setup.config, {.batch = setup.samples})),
      store_(graph_, setup.device, config::optimizer_states(setup.config.training.optimizer)),
      network_(setup.config.training.fusion
                   ? graph::fuse_for(graph_, setup.device, options_of(setup.precision))
                   : graph_,
               setup.device, store_, options_of(setup.precision)),
      phases_({[this] { return clock_.seconds(); }}, setup.device),
      step_({setup.config, network_, setup.device, store_, setup.reducer, &phases_}),
      batch_(graph_, setup.config.workload.classes, setup.config.run.seed) {
    training::initialize(graph_, setup.config.run.seed, 0, store_);
    phases_.count_communication([this] { return step_.communication_seconds(); });
}

double WholeStep::seconds() {
    const std::int64_t steps = step_.steps_between_readings();
    const Stopwatch watch;
    phases_.begin();
    for (std::int64_t i = 0; i < steps; ++i) {
        phases_.enter(training::Phase::input_wait);
        phases_.enter(training::Phase::forward);
        upload();
        step_.run(kRate);
        const bool is_last = i + 1 == steps;
        if (is_last) step_.read();
        phases_.end_step({}, is_last);
    }
    return watch.seconds() / static_cast<double>(steps);
}

}  // namespace hpcai::speed
