// SPDX-License-Identifier: Apache-2.0
#include <hpcai/training/plan_optimizer.hpp>

namespace hpcai::training {
namespace {

device::OptimizerRule rule_of(const config::TrainingConfig& training) {
    const auto momentum = static_cast<float>(training.momentum);
    const auto epsilon = [&training](double usual) { return training.epsilon.value_or(usual); };
    const auto adam = [&](bool decoupled_decay) {
        return device::Adam{training.beta1, training.beta2, epsilon(1e-8), decoupled_decay};
    };
    switch (training.optimizer) {
        case config::Optimizer::sgd:
            break;
        case config::Optimizer::lars:
            return device::Lars{
                momentum, training.nesterov, training.momentum_correction.value_or(false),
                static_cast<float>(training.trust_coefficient), static_cast<float>(epsilon(0))};
        case config::Optimizer::lamb:
            return device::Lamb{training.beta1, training.beta2, epsilon(1e-6)};
        case config::Optimizer::adam:
            return adam(false);
        case config::Optimizer::adamw:
            return adam(true);
        case config::Optimizer::adagrad:
            return device::AdaGrad{static_cast<float>(epsilon(1e-10))};
    }
    return device::Sgd{momentum, training.nesterov, training.momentum_correction.value_or(true)};
}

}  // namespace

device::Optimizer plan_optimizer(const graph::Network& network, const graph::ParameterStore& store,
                                 const config::TrainingConfig& training) {
    device::Optimizer optimizer{
        rule_of(training),
        static_cast<float>(training.weight_decay),
        {},
        network.compute(),
        training.precision == config::Precision::fp16 && network.compute() == tensor::DType::f16};
    const bool has_trust_ratios = training.optimizer == config::Optimizer::lars ||
                                  training.optimizer == config::Optimizer::lamb;
    std::vector<device::Optimizer::Range>& ranges = optimizer.ranges;
    const auto& parameters = network.graph().parameters();
    optimizer.exchange = network.exchange();
    bool is_adjacent = false;  // to the previous range
    for (std::size_t index = 0; index < parameters.size(); ++index) {
        const graph::ParameterKind kind = parameters[index].kind;
        if (!parameters[index].is_trained) {
            is_adjacent = false;
            continue;
        }
        const bool is_weight =
            kind == graph::ParameterKind::filters || kind == graph::ParameterKind::linear_weight;
        const auto parameter = static_cast<graph::ParameterId>(index);
        const auto [begin, end] = store.range(parameter);
        const device::Optimizer::Range range{
            begin, end, training.weight_decay_on_norm_and_bias || is_weight,
            has_trust_ratios && is_weight, network.working_copy(parameter)};
        const bool merges = is_adjacent && ranges.back().decays == range.decays &&
                            !ranges.back().has_trust_ratio && !range.has_trust_ratio &&
                            ranges.back().working_copy == nullptr && range.working_copy == nullptr;
        if (merges) {
            ranges.back().end = end;  // the gap between them is zero and stays zero
        } else {
            ranges.push_back(range);
        }
        is_adjacent = true;
    }
    return optimizer;
}

device::OptimizerTensors optimizer_tensors(graph::Network& network, graph::ParameterStore& store) {
    device::OptimizerTensors tensors{
        store.parameters(), store.gradients(), {}, network.step_scalars()};
    for (int state = 0; state < store.states(); ++state) {
        tensors.states.at(static_cast<std::size_t>(state)) = store.state(state);
    }
    return tensors;
}

}  // namespace hpcai::training
