// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/verification/verdict.hpp>

namespace hpcai::verification {
namespace {

/// Returns a run of ImageNet that satisfies docs/RULES.md.
config::Config official_config(config::Level level = config::Level::hardware) {
    config::Config config;
    config.run.level = level;
    config.data.kind = config::DataKind::image_folder;
    config.submission = {.system_name = "a",
                         .organization = "b",
                         .hardware = "c",
                         .operating_system = "d",
                         .communication_libraries = "e",
                         .acceleration_libraries = "f",
                         .framework = "g",
                         .parallel_mode = "h",
                         .algorithm = "i",
                         .hyper_parameters = "j",
                         .problem = "k"};
    return config;
}

VerdictFacts official_facts(int groups = 2) {
    VerdictFacts facts;
    facts.training_samples = 1281167;
    facts.validation_samples = 50000;
    facts.has_score = true;
    facts.groups = groups;
    return facts;
}

void add_failure(VerdictFacts& facts, int group, ExitCode code) {
    facts.failures.push_back("group " + std::to_string(group) + ": why");
    facts.failure_codes.push_back(code);
}

void expect_verdict(const VerdictRecord& verdict, Status status, int exit_code) {
    EXPECT_EQ(static_cast<int>(verdict.status), static_cast<int>(status));
    EXPECT_EQ(static_cast<int>(verdict.exit_code), exit_code);
    EXPECT_EQ(verdict.rankable, status == Status::valid);
    EXPECT_EQ(verdict.reasons.empty(), status == Status::valid);
}

TEST(Verdict, KnowsBrokenRulesBeforeThereIsAScore) {
    config::Config config = official_config();
    EXPECT_TRUE(broken_rules(config, official_facts()).empty());
    config.workload.epochs = 2;
    EXPECT_EQ(broken_rules(config, official_facts()),
              std::vector<std::string>{"rule 3: workload.epochs must be 90, is 2"});
    config.run.level = config::Level::custom;
    EXPECT_TRUE(broken_rules(config, official_facts()).empty());
}

TEST(Verdict, IsValidWhenEveryRuleHolds) {
    for (const auto level : {config::Level::hardware, config::Level::system, config::Level::free}) {
        expect_verdict(make_verdict(official_config(level), official_facts()), Status::valid, 0);
    }
    config::Config bootstrap = official_config();
    bootstrap.bagging.sampler = config::Sampler::bootstrap;
    expect_verdict(make_verdict(bootstrap, official_facts()), Status::valid, 0);
}

/// Returns a run of the ExtremeWeather data that satisfies docs/RULES.md.
config::Config official_weather() {
    config::Config config = official_config();
    config.workload = {.kind = config::WorkloadKind::extreme_weather,
                       .model = config::Model::faster_rcnn_r50_fpn,
                       .classes = 4,
                       .image_size = 768,
                       .image_width = 1152,
                       .channels = 16,
                       .target_quality = 0.35,
                       .penalty_exponent = 10,
                       .epochs = 50};
    config.data.kind = config::DataKind::climate_hdf5;
    config.bagging.aggregation = config::Aggregation::wbf;
    return config;
}

VerdictFacts facts_of_weather() {
    VerdictFacts facts = official_facts();
    facts.training_samples = 2 * 1460;
    facts.validation_samples = 1460;
    return facts;
}

TEST(Verdict, IsValidForTheWeatherWhenEveryRuleHolds) {
    expect_verdict(make_verdict(official_weather(), facts_of_weather()), Status::valid, 0);
    config::Config other = official_weather();
    other.detector.normalization = config::Normalization::group;
    other.detector.score_threshold = 0.05;
    expect_verdict(make_verdict(other, facts_of_weather()), Status::valid, 0);
}

TEST(Verdict, RanksNoOtherPictures) {
    config::Config config = official_weather();
    config.workload.kind = config::WorkloadKind::object_detection;
    const VerdictRecord verdict = make_verdict(config, facts_of_weather());
    expect_verdict(verdict, Status::invalid, 9);
    EXPECT_THAT(verdict.reasons.front(), testing::StartsWith("rule 1: workload.kind"));
}

struct Breach {
    std::string reason;  // its beginning
    std::function<void(config::Config&, VerdictFacts&)> commit;
};

/// Returns settings that break each rule of extreme weather once.
std::vector<Breach> breaches_of_weather() {
    using C = config::Config&;
    using F = VerdictFacts&;
    return {
        {"rule 1: data.kind",
         [](C config, F) { config.data.kind = config::DataKind::climate_synthetic; }},
        {"rule 1: the number of training samples must be 1460 or more, is 1459",
         [](C, F facts) { facts.training_samples = 1459; }},
        {"rule 1: the number of validation samples must be 1460 or more, is 8",
         [](C, F facts) { facts.validation_samples = 8; }},
        {"rule 1: test file 'b.h5' has the same contents as training file 'a.h5' (and 1 more)",
         [](C, F facts) {
             facts.disqualifications = {
                 "test file 'b.h5' has the same contents as training file 'a.h5'", "another"};
         }},
        {"rule 1: workload.classes must be 4, is 2",
         [](C config, F) { config.workload.classes = 2; }},
        {"rule 2: workload.image_size must be 768, is 128",
         [](C config, F) { config.workload.image_size = 128; }},
        {"rule 2: workload.image_width must be 1152, is 192",
         [](C config, F) { config.workload.image_width = 192; }},
        {"rule 2: workload.channels must be 16, is 3",
         [](C config, F) { config.workload.channels = 3; }},
        {"rule 2: workload.backbone_width must be 64, is 32",
         [](C config, F) { config.workload.backbone_width = 32; }},
        {"rule 2: detector.pyramid_channels must be 256, is 128",
         [](C config, F) { config.detector.pyramid_channels = 128; }},
        {"rule 2: detector.region_samples must be 512, is 64",
         [](C config, F) { config.detector.region_samples = 64; }},
        {"rule 2: detector.trained_stages must be 5, is 3",
         [](C config, F) { config.detector.trained_stages = 3; }},
        {"rule 2: detector.anchor_ratios must be [0.5, 1, 2], is [1]",
         [](C config, F) { config.detector.anchor_ratios = {1}; }},
        {"rule 3: workload.epochs must be 50, is 1",
         [](C config, F) { config.workload.epochs = 1; }},
        {"rule 4: workload.target_quality must be 0.35, is 0.3",
         [](C config, F) { config.workload.target_quality = 0.3; }},
        {"rule 4: workload.penalty_exponent must be 10, is 5",
         [](C config, F) { config.workload.penalty_exponent = 5; }},
        {"rule 5: bagging.sampler",
         [](C config, F) { config.bagging.sampler = config::Sampler::none; }},
        {"rule 7: the number of bad samples must be 0, is 1",
         [](C, F facts) { facts.bad_samples = 1; }},
    };
}

/// Returns settings that break each rule of docs/RULES.md once.
std::vector<Breach> breaches() {
    using C = config::Config&;
    using F = VerdictFacts&;
    return {
        {"rule 1: data.kind", [](C config, F) { config.data.kind = config::DataKind::synthetic; }},
        {"rule 1: the number of training samples must be 1281167, is 1281166",
         [](C, F facts) { facts.training_samples = 1281166; }},
        {"rule 1: the number of validation samples must be 50000, is 50001",
         [](C, F facts) { facts.validation_samples = 50001; }},
        {"rule 1: workload.classes must be 1000, is 10",
         [](C config, F) { config.workload.classes = 10; }},
        {"rule 2: workload.image_size must be 224, is 128",
         [](C config, F) { config.workload.image_size = 128; }},
        {"rule 2: workload.backbone_width must be 64, is 8",
         [](C config, F) { config.workload.backbone_width = 8; }},
        {"rule 3: workload.epochs must be 90, is 89",
         [](C config, F) { config.workload.epochs = 89; }},
        {"rule 4: workload.target_quality must be 0.763, is 0.76",
         [](C config, F) { config.workload.target_quality = 0.76; }},
        {"rule 4: workload.penalty_exponent must be 5, is 1",
         [](C config, F) { config.workload.penalty_exponent = 1; }},
        {"rule 5: bagging.sampler",
         [](C config, F) { config.bagging.sampler = config::Sampler::none; }},
        {"rule 5: bagging.sampler",
         [](C config, F) { config.bagging.sampler = config::Sampler::subsample; }},
        {"rule 6: training.initial_weights",
         [](C config, F) { config.training.initial_weights = "old.safetensors"; }},
        {"rule 7: the number of bad samples must be 0, is 1",
         [](C, F facts) { facts.bad_samples = 1; }},
        {"the score is not a number", [](C, F facts) { facts.has_score = false; }},
    };
}

void expect_invalid_for_each(const std::vector<Breach>& breaches, const config::Config& official,
                             const VerdictFacts& official_facts) {
    for (const Breach& breach : breaches) {
        config::Config config = official;
        VerdictFacts facts = official_facts;
        breach.commit(config, facts);
        const VerdictRecord verdict = make_verdict(config, facts);
        expect_verdict(verdict, Status::invalid, 9);
        ASSERT_EQ(verdict.reasons.size(), 1U) << breach.reason;
        EXPECT_TRUE(verdict.reasons[0].starts_with(breach.reason)) << verdict.reasons[0];
    }
}

TEST(Verdict, IsInvalidForEachBrokenRuleAndNamesIt) {
    expect_invalid_for_each(breaches(), official_config(), official_facts());
    expect_invalid_for_each(breaches_of_weather(), official_weather(), facts_of_weather());
}

/// Returns the reasons in the rules' rows.
std::vector<std::string> reasons_of(const std::vector<RuleRecord>& rules) {
    std::vector<std::string> reasons;
    for (const RuleRecord& rule : rules) {
        if (rule.kept) continue;
        reasons.push_back("rule " + std::to_string(rule.number) + ": " + rule.what + " must be " +
                          rule.required + ", is " + rule.found);
    }
    return reasons;
}

TEST(Verdict, ListsEveryRuleWithWhatIsRequiredAndFound) {
    config::Config config = official_weather();
    config.workload.epochs = 6;
    config.bagging.sampler = config::Sampler::none;
    config.training.initial_weights = "old.safetensors";
    config.training.batch_norm_samples = 4;
    const VerdictRecord verdict = make_verdict(config, facts_of_weather());
    EXPECT_EQ(reasons_of(verdict.rules), verdict.reasons);
    EXPECT_EQ(verdict.reasons.size(), 4U);
    std::set<int> numbers;
    for (const RuleRecord& rule : verdict.rules) numbers.insert(rule.number);
    EXPECT_EQ(numbers, (std::set<int>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_THAT(verdict.rules, testing::Contains(RuleRecord{1, "the number of validation samples",
                                                            "1460 or more", "1460", true}));
    EXPECT_THAT(verdict.rules, testing::Contains(RuleRecord{1, "disqualifications of the data",
                                                            "none", "none", true}));
}

TEST(Verdict, AllowsOtherBatchNormSamplesOnlyAtLevelFree) {
    for (const auto level : {config::Level::hardware, config::Level::system, config::Level::free}) {
        config::Config config = official_config(level);
        config.training.batch_norm_samples = 4;
        const auto broken = broken_rules(config, official_facts());
        EXPECT_EQ(broken.empty(), level == config::Level::free);
        if (broken.empty()) continue;
        EXPECT_EQ(broken, std::vector<std::string>{
                              "rule 9: training.batch_norm_samples must be auto, is 4"});
    }
}

TEST(Verdict, KnowsPhotographsByTheirNames) {
    VerdictFacts facts = official_facts();
    facts.disqualifications = {"3 classes are strange"};
    expect_verdict(make_verdict(official_config(), facts), Status::invalid, 9);
    EXPECT_EQ(broken_rules(official_config(), facts),
              std::vector<std::string>{"rule 1: 3 classes are strange"});
}

TEST(Verdict, HasOnlyRuleEightAtLevelCustom) {
    VerdictFacts facts = official_facts(2);
    add_failure(facts, 1, ExitCode::invalid);
    const VerdictRecord verdict = make_verdict(official_config(config::Level::custom), facts);
    EXPECT_EQ(verdict.rules,
              (std::vector<RuleRecord>{
                  {8, "groups whose ranks held different models", "0", "1", false}}));
}

TEST(Verdict, ListsTheRulesOfARunWithoutAnyFinishedGroup) {
    VerdictFacts facts = official_facts(1);
    facts.has_score = false;
    add_failure(facts, 0, ExitCode::data);
    const VerdictRecord verdict = make_verdict(official_config(), facts);
    EXPECT_GT(verdict.rules.size(), 8U);
    EXPECT_TRUE(reasons_of(verdict.rules).empty());
}

TEST(Verdict, RanksNoResultWhoseSubmissionIsIncomplete) {
    config::Config config = official_config();
    config.submission.organization = " \t";
    config.submission.problem.clear();
    const VerdictRecord verdict = make_verdict(config, official_facts());
    EXPECT_EQ(verdict.status, Status::valid);
    EXPECT_EQ(verdict.exit_code, ExitCode::ok);
    EXPECT_FALSE(verdict.rankable);
    EXPECT_EQ(verdict.reasons,
              std::vector<std::string>{
                  "not rankable: the section submission lacks organization, problem"});
    EXPECT_EQ(describe_submission(config).missing,
              (std::vector<std::string>{"organization", "problem"}));
    EXPECT_EQ(describe_submission(config).hardware, "c");
}

TEST(Verdict, RanksNoResultOfResumedGroups) {
    VerdictFacts facts = official_facts();
    facts.not_rankable = {"a group was resumed: not rankable"};
    const VerdictRecord verdict = make_verdict(official_config(), facts);
    EXPECT_EQ(verdict.status, Status::valid);
    EXPECT_EQ(verdict.exit_code, ExitCode::ok);
    EXPECT_FALSE(verdict.rankable);
    EXPECT_THAT(verdict.reasons, testing::ElementsAre("a group was resumed: not rankable"));
}

TEST(Verdict, NamesEveryBrokenRuleAtOnce) {
    config::Config config = official_config();
    VerdictFacts facts = official_facts();
    config.workload.epochs = 1;
    facts.bad_samples = 2;
    facts.has_score = false;
    add_failure(facts, 1, ExitCode::data);
    const VerdictRecord verdict = make_verdict(config, facts);
    expect_verdict(verdict, Status::invalid, 9);
    ASSERT_EQ(verdict.reasons.size(), 4U);
    EXPECT_EQ(verdict.reasons.back(), "group 1: why");
}

TEST(Verdict, IsCustomAtLevelCustomEvenIfRulesAreBroken) {
    for (const Breach& breach : breaches()) {
        config::Config config = official_config(config::Level::custom);
        VerdictFacts facts = official_facts();
        breach.commit(config, facts);
        if (!facts.has_score) continue;
        expect_verdict(make_verdict(config, facts), Status::custom, 0);
    }
}

TEST(Verdict, IsInvalidWithoutAScoreAtEveryLevel) {
    VerdictFacts facts = official_facts();
    facts.has_score = false;
    expect_verdict(make_verdict(official_config(config::Level::custom), facts), Status::invalid, 9);
}

TEST(Verdict, IsPartialWhenSomeGroupsFailed) {
    for (const auto level : {config::Level::custom, config::Level::hardware}) {
        VerdictFacts facts = official_facts(3);
        add_failure(facts, 1, ExitCode::data);
        const VerdictRecord verdict = make_verdict(official_config(level), facts);
        expect_verdict(verdict, Status::partial, 7);
        EXPECT_EQ(verdict.reasons,
                  (std::vector<std::string>{"2 of 3 groups finished", "group 1: why"}));
    }
}

TEST(Verdict, IsInvalidAtEveryLevelWhenTheReplicasOfAGroupDiverged) {
    for (const auto level : {config::Level::custom, config::Level::hardware}) {
        VerdictFacts facts = official_facts(3);
        add_failure(facts, 1, ExitCode::invalid);
        const VerdictRecord verdict = make_verdict(official_config(level), facts);
        expect_verdict(verdict, Status::invalid, 9);
        ASSERT_EQ(verdict.reasons.size(), 2U);
        EXPECT_EQ(verdict.reasons[0],
                  "rule 8: the ranks of a group must hold the same model; in 1 of 3 groups they "
                  "did not");
        EXPECT_EQ(verdict.reasons[1], "group 1: why");
    }
}

TEST(Verdict, IsAlsoInvalidWhenNoOtherGroupFinished) {
    for (const ExitCode other : {ExitCode::invalid, ExitCode::data, ExitCode::watchdog}) {
        VerdictFacts facts = official_facts(2);
        facts.has_score = false;
        add_failure(facts, 0, other);
        add_failure(facts, 1, ExitCode::invalid);
        const VerdictRecord verdict = make_verdict(official_config(config::Level::custom), facts);
        expect_verdict(verdict, Status::invalid, 9);
        ASSERT_EQ(verdict.reasons.size(), 3U);
        EXPECT_TRUE(verdict.reasons[0].starts_with("rule 8: ")) << verdict.reasons[0];
    }
}

TEST(Verdict, IsInvalidWhenNoGroupFinishedAndReportsWhy) {
    const std::vector<std::pair<std::vector<ExitCode>, int>> cases{
        {{ExitCode::data, ExitCode::data}, 4},
        {{ExitCode::data, ExitCode::internal}, 5},
        {{ExitCode::watchdog, ExitCode::watchdog}, 5},
    };
    for (const auto& [codes, exit_code] : cases) {
        VerdictFacts facts = official_facts();
        facts.has_score = false;
        for (std::size_t group = 0; group < codes.size(); ++group) {
            add_failure(facts, static_cast<int>(group), codes[group]);
        }
        const VerdictRecord verdict = make_verdict(official_config(config::Level::custom), facts);
        expect_verdict(verdict, Status::invalid, exit_code);
        EXPECT_EQ(verdict.reasons, (std::vector<std::string>{"group 0: why", "group 1: why"}));
    }
}

}  // namespace
}  // namespace hpcai::verification
