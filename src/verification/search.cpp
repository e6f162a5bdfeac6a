// SPDX-License-Identifier: Apache-2.0
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

}  // namespace

search::Basis search_basis(const config::Config& config) {
    const config::SearchConfig& search = config.search;
    const double rate = config.training.learning_rate, decay = config.training.weight_decay;
    search::Settings settings;
    settings.parent = parent_rule(search.parent);
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

double search_flops_limit(const config::Config& config, const graph::Graph& root) {
    const metrics::FlopsLedger ledger(root);
    return config.search.max_flops_factor *
           static_cast<double>(ledger.training_per_sample(metrics::kOfficialLedger));
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
