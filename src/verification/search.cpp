// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <hpcai/base/error.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/verification/search.hpp>

namespace hpcai::verification {
namespace {

search::ParentRule parent_rule(config::ParentChoice choice) {
    switch (choice) {
        case config::ParentChoice::evolution:
            return search::ParentRule::evolution;
        case config::ParentChoice::bayesian:
            return search::ParentRule::bayesian;
        case config::ParentChoice::random:
            return search::ParentRule::random;
    }
    return search::ParentRule::evolution;
}

double training_flops(const graph::Graph& graph) {
    const metrics::FlopsLedger ledger(graph);
    return static_cast<double>(ledger.training_per_sample(metrics::kOfficialLedger));
}

}  // namespace

search::Basis search_basis(const config::Config& config) {
    const config::SearchConfig& search = config.search;
    const double rate = config.training.learning_rate, decay = config.training.weight_decay;
    search::Settings settings;
    settings.parent = parent_rule(search.parent);
    settings.has_plain_deepening = search.plain_deepening;
    settings.dimensions = {{.name = kLearningRate,
                            .low = rate * search.rate_factors.front(),
                            .high = rate * search.rate_factors.back(),
                            .is_logarithmic = true,
                            .choices = {},
                            .start = rate},
                           {.name = kWeightDecay,
                            .low = search.weight_decays.front(),
                            .high = search.weight_decays.back(),
                            .is_logarithmic = true,
                            .choices = {},
                            .start = decay}};
    return {std::move(settings), config.run.seed, models::make_model(config)};
}

ProposalLimits proposal_limits(const config::Config& config, const graph::Graph& root, int ranks,
                               std::string_view precision) {
    constexpr std::int64_t kFp32Bytes = 4;
    const bool is_narrow = precision == "bf16" || precision == "fp16" || precision == "mixed";
    const std::int64_t element = is_narrow ? 2 : kFp32Bytes;
    const std::int64_t fp32_values = 2 + config::optimizer_states(config.training.optimizer);
    return {.flops = config.search.max_flops_factor * training_flops(root),
            .parameter_bytes = fp32_values * kFp32Bytes + 2 * element,
            .activation_bytes = config.training.batch_size / ranks * element,
            .configured_memory = static_cast<std::int64_t>(config.search.max_memory_gb * 1e9)};
}

std::int64_t ProposalLimits::memory_bytes(const graph::Graph& graph) const {
    std::int64_t elements = 0;
    for (const graph::Node& node : graph.nodes())
        elements += graph.value(node.output).shape.elements();
    const auto parameters = static_cast<std::int64_t>(graph.parameter_count());
    std::int64_t of_parameters = 0, of_activations = 0, sum = 0;
    const bool overflows = __builtin_mul_overflow(parameters, parameter_bytes, &of_parameters) ||
                           __builtin_mul_overflow(elements, activation_bytes, &of_activations) ||
                           __builtin_add_overflow(of_parameters, of_activations, &sum);
    return overflows ? std::numeric_limits<std::int64_t>::max() : sum;
}

int first_draw(const ProposalLimits& limits, const search::Basis& basis,
               const search::Request& request) {
    const bool has_memory = limits.memory_bytes(basis.root) <= request.memory_bytes;
    return request.sequence == 0 || has_memory ? 0 : basis.settings.max_draws;
}

std::string_view refused_by(const ProposalLimits& limits, const search::Basis& basis,
                            const ProposedTrial& trial) {
    const auto graph = morphs::apply_all(basis.root, search::morphs_of(trial.edits));
    if (training_flops(graph) > limits.flops) return "search.max_flops_factor";
    const bool may_lack_memory = trial.sequence > 0 && trial.draw < basis.settings.max_draws;
    return may_lack_memory && limits.memory_bytes(graph) > trial.memory_bytes
               ? "search.max_memory_gb"
               : "";
}

config::Config trial_config(const config::Config& config, const ProposedTrial& trial) {
    config::Config changed = config;
    changed.workload.epochs = config::trial_epochs(config.search, trial.sequence);
    for (const HyperParameter& parameter : trial.hyper_parameters) {
        const bool is_rate = parameter.name == kLearningRate;
        require(is_rate || parameter.name == kWeightDecay, ExitCode::data,
                "trial {} has an unknown hyper-parameter '{}'", trial.sequence, parameter.name);
        (is_rate ? changed.training.learning_rate : changed.training.weight_decay) =
            parameter.value;
    }
    return changed;
}

std::vector<SampleFlops> sample_flops(const graph::Graph& graph) {
    const metrics::FlopsLedger ledger(graph);
    std::vector<SampleFlops> flops;
    for (const ops::LedgerName& row : ops::kLedgers) {
        flops.push_back({std::string(row.name), ledger.training_per_sample(row.ledger),
                         ledger.forward_per_sample(row.ledger)});
    }
    return flops;
}

}  // namespace hpcai::verification
