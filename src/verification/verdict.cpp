// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <iterator>
#include <type_traits>

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/config/keys.hpp>
#include <hpcai/report/record_text.hpp>
#include <hpcai/verification/verdict.hpp>

namespace hpcai::verification {
namespace {

/// A key whose value rules 1 to 4 of docs/RULES.md prescribe.
struct FixedSetting {
    int rule;
    const char* key;
    const char* value;
};

/// A problem for which docs/RULES.md has a ranking.
struct Problem {
    config::WorkloadKind kind;
    config::ProblemClass problem_class;
    config::DataKind data_kind;
    const char* data_description;
    std::int64_t training_samples;
    std::int64_t validation_samples;
    bool may_have_more_samples = false;
    const char* samples_sha256 = "";  // data::SampleSets::sha256; empty: the rules do not fix it
    std::span<const FixedSetting> settings;
};

constexpr FixedSetting kOfficialPictures[] = {
    {1, "workload.classes", "1000"},         {2, "workload.image_size", "224"},
    {2, "workload.backbone_width", "64"},    {3, "workload.epochs", "90"},
    {4, "workload.target_quality", "0.763"}, {4, "workload.penalty_exponent", "5"}};

constexpr FixedSetting kOfficialWeather[] = {
    {1, "workload.classes", "4"},
    {2, "workload.image_size", "768"},
    {2, "workload.image_width", "1152"},
    {2, "workload.channels", "16"},
    {2, "workload.backbone_width", "64"},
    {3, "workload.epochs", "50"},
    {4, "workload.target_quality", "0.35"},
    {4, "workload.penalty_exponent", "10"},
    {2, "detector.trained_stages", "5"},
    {2, "detector.pyramid_channels", "256"},
    {2, "detector.head_features", "1024"},
    {2, "detector.anchor_sizes", "[32, 64, 128, 256, 512]"},
    {2, "detector.anchor_ratios", "[0.5, 1, 2]"},
    {2, "detector.anchor_samples", "256"},
    {2, "detector.region_samples", "512"},
    {2, "detector.training_proposals", "2000"},
    {2, "detector.inference_proposals", "1000"},
};

/// The settings that AIPerf published.
constexpr FixedSetting kSearches[] = {{1, "workload.classes", "1000"},
                                      {2, "workload.image_size", "224"},
                                      {2, "workload.backbone_width", "64"},
                                      {2, "workload.model", "resnet50_v1"},
                                      {2, "search.root_blocks", "[3, 4, 6, 3]"},
                                      {3, "search.epochs", "[15, 30, 45, 60]"},
                                      {3, "search.trials", "0"},
                                      {4, "search.hold_out", "0.1"}};

constexpr FixedSetting kMiniPictures[] = {
    {1, "workload.classes", "24"},           {2, "workload.image_size", "48"},
    {2, "workload.backbone_width", "16"},    {3, "workload.epochs", "40"},
    {4, "workload.target_quality", "0.957"}, {4, "workload.penalty_exponent", "5"}};

constexpr FixedSetting kMiniWeather[] = {
    {1, "workload.classes", "4"},
    {1, "data.climate_precision", "bf16"},
    {2, "workload.image_size", "96"},
    {2, "workload.image_width", "128"},
    {2, "workload.channels", "16"},
    {2, "workload.backbone_width", "64"},
    {3, "workload.epochs", "8"},
    {4, "workload.target_quality", "0.62"},
    {4, "workload.penalty_exponent", "10"},
    {2, "detector.trained_stages", "5"},
    {2, "detector.pyramid_channels", "96"},
    {2, "detector.head_features", "256"},
    {2, "detector.anchor_sizes", "[20, 32, 56, 96, 160]"},
    {2, "detector.anchor_ratios", "[0.5, 1, 2]"},
    {2, "detector.anchor_samples", "128"},
    {2, "detector.region_samples", "64"},
    {2, "detector.training_proposals", "256"},
    {2, "detector.inference_proposals", "200"},
};

/// Specification V2.0 of HPC AI500 defines the official problems. It does not state which years of
/// weather are for training.
constexpr std::array kProblems{
    Problem{.kind = config::WorkloadKind::image_classification,
            .problem_class = config::ProblemClass::official,
            .data_kind = config::DataKind::image_folder,
            .data_description = "image_folder (the photographs of ImageNet-1k)",
            .training_samples = 1281167,
            .validation_samples = 50000,
            .settings = kOfficialPictures},
    Problem{.kind = config::WorkloadKind::extreme_weather,
            .problem_class = config::ProblemClass::official,
            .data_kind = config::DataKind::climate_hdf5,
            .data_description = "climate_hdf5 (years of the ExtremeWeather data)",
            .training_samples = 1460,
            .validation_samples = 1460,
            .may_have_more_samples = true,
            .settings = kOfficialWeather},
    Problem{.kind = config::WorkloadKind::architecture_search,
            .problem_class = config::ProblemClass::official,
            .data_kind = config::DataKind::image_folder,
            .data_description = "image_folder (the photographs of ImageNet-1k)",
            .training_samples = 1281167,
            .validation_samples = 50000,
            .settings = kSearches},
    Problem{.kind = config::WorkloadKind::image_classification,
            .problem_class = config::ProblemClass::mini,
            .data_kind = config::DataKind::image_folder,
            .data_description = "image_folder (the photographs of data generate mini)",
            .training_samples = 1536,
            .validation_samples = 1536,
            .samples_sha256 = "79f3ca620413ebfc072d17d864529e2c2c519b3d9d8f1e004cf4620db2c6700d",
            .settings = kMiniPictures},
    Problem{.kind = config::WorkloadKind::extreme_weather,
            .problem_class = config::ProblemClass::mini,
            .data_kind = config::DataKind::climate_hdf5,
            .data_description = "climate_hdf5 (the weather of data generate mini)",
            .training_samples = 512,
            .validation_samples = 512,
            .samples_sha256 = "020e05965ef9cb1519660a7bc20eb4a9765a367863b1d175d0a1b0acbb1df8ad",
            .settings = kMiniWeather},
};

/// Returns the problem of a workload; null if it has no rules.
const Problem* find_problem(config::WorkloadKind kind, config::ProblemClass problem_class) {
    const auto* const found = std::ranges::find_if(kProblems, [&](const Problem& problem) {
        return problem.kind == kind && problem.problem_class == problem_class;
    });
    return found == kProblems.end() ? nullptr : found;
}

struct Rule {
    RuleRecord record;
    std::string broken;  // the message if the rule is broken
};

Rule rule_of(const RuleRecord& record) {
    return {record, fmt::format("rule {}: {} must be {}, is {}", record.number, record.what,
                                record.required, record.found)};
}

template <typename T>
Rule equal(int number, const char* what, T required, T found) {
    return rule_of(
        {number, what, fmt::format("{}", required), fmt::format("{}", found), found == required});
}

/// Makes a rule about the value of `key`; `holds` is whether the value is legal.
Rule rule_of_key(int number, const char* key, const char* required, const config::Config& config,
                 bool holds) {
    const std::string found = config::value_text(config, key);
    return rule_of({number, key, required, found.empty() ? "empty" : found, holds});
}

/// Makes a rule that any violation breaks; its message has the first violation.
Rule rule_against(int number, const char* what, const std::vector<std::string>& violations) {
    std::string found = violations.empty() ? "none" : violations.front();
    if (violations.size() > 1) found += fmt::format(" (and {} more)", violations.size() - 1);
    return {{number, what, "none", found, violations.empty()},
            fmt::format("rule {}: {}", number, found)};
}

/// Returns rules 1 to 4, which fix the problem.
std::vector<Rule> rules_of_problem(const config::Config& config, const VerdictFacts& facts) {
    const Problem* const problem =
        find_problem(config.workload.kind, config.workload.problem_class);
    if (problem == nullptr) {
        return {rule_of_key(1, "workload.kind", "image_classification or extreme_weather", config,
                            false)};
    }
    const auto samples = [&](const char* what, std::int64_t required, std::int64_t found) {
        if (!problem->may_have_more_samples) return equal(1, what, required, found);
        return rule_of({1, what, fmt::format("{} or more", required), std::to_string(found),
                        found >= required});
    };
    std::vector<Rule> rules{
        rule_of_key(1, "data.kind", problem->data_description, config,
                    config.data.kind == problem->data_kind),
        samples("the number of training samples", problem->training_samples,
                facts.training_samples),
        samples("the number of validation samples", problem->validation_samples,
                facts.validation_samples),
        rule_against(1, "disqualifications of the data", facts.disqualifications),
    };
    if (const std::string required = problem->samples_sha256; !required.empty()) {
        rules.push_back(equal(1, "the SHA-256 of the samples", required, facts.samples_sha256));
        const bool is_legal_seed = config.run.seed >= 1 && config.run.seed <= 3;
        rules.push_back(rule_of_key(3, "run.seed", "1, 2 or 3", config, is_legal_seed));
    }
    for (const FixedSetting& setting : problem->settings) {
        rules.push_back(equal(setting.rule, setting.key, std::string(setting.value),
                              config::value_text(config, setting.key)));
    }
    return rules;
}

/// Returns the rules from 3 to 5 that only searches have.
std::vector<Rule> rules_of_search(const config::Config& config, const VerdictFacts& facts) {
    constexpr double kSeconds = 3600, kAccuracy = 0.7;
    std::vector<Rule> rules{rule_of_key(3, "search.duration_seconds", "3600 or more", config,
                                        config.search.duration_seconds >= kSeconds),
                            rule_of_key(3, "search.history", "asynchronous or own", config,
                                        config.search.history != config::SearchHistory::recorded)};
    if (facts.best_accuracy) {
        rules.push_back(rule_of(
            {4, "the best accuracy on the hold-out", fmt::format("{} or more", kAccuracy),
             fmt::format("{:.6f}", *facts.best_accuracy), *facts.best_accuracy >= kAccuracy}));
    }
    rules.push_back(rule_of_key(5, "training.precision", "16 bits or more", config,
                                config.training.precision != config::Precision::int8));
    return rules;
}

/// Returns the rules from 1 to 7 and 9 that apply at run.level.
std::vector<Rule> official_rules(const config::Config& config, const VerdictFacts& facts) {
    if (config.run.level == config::Level::custom) return {};
    std::vector<Rule> rules = rules_of_problem(config, facts);
    const bool is_search = config::is_search(config.workload);
    if (is_search) std::ranges::move(rules_of_search(config, facts), std::back_inserter(rules));
    const bool is_bagging = config.bagging.sampler == config::Sampler::bootstrap ||
                            config.bagging.sampler == config::Sampler::poisson;
    if (!is_search) {
        rules.push_back(
            rule_of_key(5, "bagging.sampler", "bootstrap or poisson", config, is_bagging));
    }
    rules.push_back(rule_of_key(6, "training.initial_weights", "empty", config,
                                config.training.initial_weights.empty()));
    rules.push_back(equal(7, "the number of bad samples", std::int64_t{0}, facts.bad_samples));
    if (config.run.level != config::Level::free) {
        rules.push_back(rule_of_key(9, "training.batch_norm_samples", "auto", config,
                                    !config.training.batch_norm_samples.has_value()));
    }
    return rules;
}

/// Returns rule 8, which applies at every level: the replicas of a group must be equal.
Rule equal_replicas(const VerdictFacts& facts) {
    const auto diverged = std::ranges::count(facts.failure_codes, ExitCode::invalid);
    return {{8, "groups whose ranks held different models", "0", std::to_string(diverged),
             diverged == 0},
            fmt::format("rule 8: the ranks of a group must hold the same model; in {} of {} groups "
                        "they did not",
                        diverged, facts.groups)};
}

std::vector<std::string> messages_of_broken(const std::vector<Rule>& rules) {
    std::vector<std::string> broken;
    for (const Rule& rule : rules)
        if (!rule.record.kept) broken.push_back(rule.broken);
    return broken;
}

/// Makes the verdict without the list of rules. `replicas` is rule 8; `broken` has the messages of
/// all other broken rules.
VerdictRecord decide(const config::Config& config, const VerdictFacts& facts, const Rule& replicas,
                     const std::vector<std::string>& broken) {
    const int failed = static_cast<int>(facts.failures.size());
    std::vector<std::string> reasons;
    const auto add = [&](const std::vector<std::string>& texts) {
        reasons.insert(reasons.end(), texts.begin(), texts.end());
    };
    if (!replicas.record.kept) reasons.push_back(replicas.broken);
    if (failed == facts.groups) {
        const bool all_data = std::ranges::all_of(
            facts.failure_codes, [](ExitCode code) { return code == ExitCode::data; });
        const ExitCode code = !replicas.record.kept ? ExitCode::invalid
                              : all_data            ? ExitCode::data
                                                    : ExitCode::all_groups_failed;
        add(facts.failures);
        return {Status::invalid, reasons, code, false, {}};
    }
    if (!facts.has_score) reasons.push_back("the score is not a number");
    add(broken);
    if (!reasons.empty()) {
        add(facts.failures);
        return {Status::invalid, reasons, ExitCode::invalid, false, {}};
    }
    if (failed > 0) {
        reasons.push_back(
            fmt::format("{} of {} groups finished", facts.groups - failed, facts.groups));
        add(facts.failures);
        return {Status::partial, reasons, ExitCode::partial, false, {}};
    }
    if (config.run.level == config::Level::custom) {
        return {Status::custom, {"run.level is custom: not rankable"}, ExitCode::ok, false, {}};
    }
    const std::string incomplete = describe_missing_submission(config);
    if (!incomplete.empty()) reasons.push_back(incomplete);
    add(facts.not_rankable);
    return {Status::valid, reasons, ExitCode::ok, reasons.empty(), {}};
}

}  // namespace

std::vector<std::string> broken_rules(const config::Config& config, const VerdictFacts& facts) {
    std::vector<std::string> most;
    config::Config run = config;
    for (int number = 1; number <= config.run.repeat; ++number, ++run.run.seed) {
        auto broken = messages_of_broken(official_rules(run, facts));
        if (broken.size() > most.size()) most = std::move(broken);
    }
    return most;
}

std::string required_samples_sha256(const config::WorkloadConfig& workload) {
    const Problem* const problem = find_problem(workload.kind, workload.problem_class);
    return problem == nullptr ? "" : problem->samples_sha256;
}

std::optional<std::int64_t> required_training_samples(const config::Config& config) {
    const config::WorkloadConfig& workload = config.workload;
    if (required_samples_sha256(workload).empty()) return std::nullopt;
    const Problem& problem = *find_problem(workload.kind, workload.problem_class);
    if (config.data.kind != problem.data_kind) return std::nullopt;
    return problem.training_samples;
}

std::vector<std::string> rules_broken_by_settings(const config::Config& config) {
    VerdictFacts legal_facts;
    if (const Problem* const problem =
            find_problem(config.workload.kind, config.workload.problem_class)) {
        legal_facts.training_samples = problem->training_samples;
        legal_facts.validation_samples = problem->validation_samples;
        legal_facts.samples_sha256 = problem->samples_sha256;
    }
    return broken_rules(config, legal_facts);
}

VerdictRecord make_verdict(const config::Config& config, const VerdictFacts& facts) {
    std::vector<Rule> rules = official_rules(config, facts);
    // Rule 10 applies at every level, because GPUs with errors may have computed wrong results.
    if (facts.watched_gpus > 0) {
        rules.push_back(
            rule_against(10, "GPUs with uncorrected memory errors or Xids", facts.gpu_errors));
    }
    const Rule replicas = equal_replicas(facts);
    VerdictRecord verdict = decide(config, facts, replicas, messages_of_broken(rules));
    for (const Rule& rule : rules) verdict.rules.push_back(rule.record);
    verdict.rules.push_back(replicas.record);
    std::ranges::stable_sort(verdict.rules, {}, &RuleRecord::number);
    return verdict;
}

SubmissionRecord describe_submission(const config::Config& config) {
    SubmissionRecord record;
    for_each_field(record, [&](const std::string& key, auto& value) {
        if constexpr (std::is_same_v<decltype(value), std::string&>) {
            value = config::value_text(config, "submission." + key);
            const bool is_blank = value.find_first_not_of(" \t\r\n") == std::string::npos;
            if (is_blank && key != "contact") record.missing.push_back(key);
        }
    });
    return record;
}

std::string describe_missing_submission(const config::Config& config) {
    if (config.run.level == config::Level::custom) return "";
    const std::vector<std::string> missing = describe_submission(config).missing;
    if (missing.empty()) return "";
    return fmt::format("not rankable: the section submission lacks {}", fmt::join(missing, ", "));
}

std::string describe_missing_for_rank(const config::Config& config) {
    const std::string text = describe_missing_submission(config);
    const bool has_too_few_runs = config.run.level != config::Level::custom &&
                                  config.workload.problem_class == config::ProblemClass::mini &&
                                  config.run.repeat < report::kMiniRuns;
    if (!has_too_few_runs) return text;
    return fmt::format("{}run.repeat is {}, and the rules require {} runs",
                       text.empty() ? "not rankable: " : text + "; ", config.run.repeat,
                       report::kMiniRuns);
}

std::string describe_resumed(const config::Config& config) {
    if (config.run.level == config::Level::custom) return "";
    return "not rankable: the time between the launches of a resumed run is not counted";
}

}  // namespace hpcai::verification
