// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/clock.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/graph/parameter_store.hpp>
#include <hpcai/training/step_log.hpp>
#include <hpcai/training/step_runner.hpp>

namespace hpcai::speed {

/// Returns random inputs of the graph by name. Images are random bytes or normal numbers. Each
/// image has a class, or up to eight boxes whose sides are 1/8 to 1/2 of the image's.
std::map<std::string, std::vector<std::byte>> random_inputs(const graph::Graph& graph,
                                                            std::int64_t classes,
                                                            std::uint64_t seed);

/// Training steps of the whole configured model on one rank, without the section `parallel`. The
/// batch is random, drawn with run.seed. A step is upload, weight casts, forward, backward with the
/// all-reduces of Setup::reducer, and optimizer.
class WholeStep {
public:
    struct Setup {
        const config::Config& config;
        device::Device& device;
        device::Precision precision;
        comm::GradientReducer& reducer;
        int samples = 1;  // per step of this rank
    };

    /// Everything in `setup` must outlive the object. Throws as the device does.
    explicit WholeStep(const Setup& setup);

    /// Runs a step like the trainer and returns its seconds. If the trainer does not wait for the
    /// device after each step, runs several and returns their mean. Collective over the reducer's
    /// ranks.
    double run();
    /// The results of all steps of the last call of run().
    const training::StepResults& results() const { return results_; }

    /// Sets the inputs of the network to the batch.
    void upload();
    const training::StepLog& log() const { return log_; }
    /// As training::StepRunner::communication_seconds().
    double communication_seconds() const { return step_.communication_seconds(); }
    graph::ParameterStore& store() { return store_; }
    graph::Network& network() { return network_; }
    const graph::Network& network() const { return network_; }

private:
    // Small, so that training with random labels does not diverge during a long measurement.
    static constexpr double kLearningRate = 1e-4;

    graph::Graph graph_;
    graph::ParameterStore store_;
    graph::Network network_;
    const Stopwatch clock_;
    training::StepLog log_;
    training::TrainingStep step_;
    std::map<std::string, std::vector<std::byte>> batch_;  // by input of the network
    int samples_;
    training::StepResults results_;
};

}  // namespace hpcai::speed
