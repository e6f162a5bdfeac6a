// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include <gtest/gtest.h>

#include <hpcai/verification/verdict.hpp>

/// The rules of an architecture search at level aiperf.
namespace hpcai::verification {
namespace {

config::Config official_search() {
    config::Config config;
    config.run.level = config::Level::aiperf;
    config.workload.kind = config::WorkloadKind::architecture_search;
    config.workload.model = config::Model::resnet50_v1;
    config.bagging.sampler = config::Sampler::none;
    config.data.kind = config::DataKind::image_folder;
    config.search.duration_seconds = 3600;
    return config;
}

VerdictFacts facts_of_search() {
    VerdictFacts facts;
    facts.training_samples = 1281167;
    facts.validation_samples = 50000;
    facts.best_accuracy = 0.7;
    facts.has_score = true;
    facts.groups = 2;
    return facts;
}

TEST(SearchRules, AreKeptByASearchOfAiperf) {
    const VerdictRecord verdict = make_verdict(official_search(), facts_of_search());
    EXPECT_EQ(verdict.status, Status::valid);
    EXPECT_TRUE(rules_broken_by_settings(official_search()).empty());
}

TEST(SearchRules, AreEachNamedWhenBroken) {
    using C = config::Config&;
    using F = VerdictFacts&;
    const std::vector<std::pair<std::string, std::function<void(C, F)>>> breaches{
        {"rule 1: the number of training samples must be 1281167, is 1153000",
         [](C, F facts) { facts.training_samples = 1153000; }},
        {"rule 2: search.root_blocks must be [3, 4, 6, 3], is [1, 1, 1, 1]",
         [](C config, F) {
             config.search.root_blocks = {1, 1, 1, 1};
         }},
        {"rule 2: workload.model must be resnet50_v1, is resnet50_v1.5",
         [](C config, F) { config.workload.model = config::Model::resnet50_v1_5; }},
        {"rule 3: search.epochs must be [15, 30, 45, 60], is [1]",
         [](C config, F) { config.search.epochs = {1}; }},
        {"rule 3: search.trials must be 0, is 1", [](C config, F) { config.search.trials = 1; }},
        {"rule 3: search.duration_seconds must be 3600 or more, is 3599",
         [](C config, F) { config.search.duration_seconds = 3599; }},
        {"rule 3: search.history must be asynchronous or own, is recorded",
         [](C config, F) { config.search.history = config::SearchHistory::recorded; }},
        {"rule 4: search.hold_out must be 0.1, is 0.2",
         [](C config, F) { config.search.hold_out = 0.2; }},
        {"rule 4: the best accuracy on the hold-out must be 0.7 or more, is 0.699900",
         [](C, F facts) { facts.best_accuracy = 0.6999; }},
        {"rule 5: training.precision must be 16 bits or more, is int8",
         [](C config, F) { config.training.precision = config::Precision::int8; }},
    };
    for (const auto& [reason, commit] : breaches) {
        config::Config config = official_search();
        VerdictFacts facts = facts_of_search();
        commit(config, facts);
        const VerdictRecord verdict = make_verdict(config, facts);
        EXPECT_EQ(verdict.status, Status::invalid) << reason;
        EXPECT_EQ(verdict.reasons, std::vector<std::string>{reason});
    }
}

}  // namespace
}  // namespace hpcai::verification
