// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/core.h>

#include <hpcai/base/units.hpp>
#include <hpcai/report/html.hpp>
#include <hpcai/report/summary.hpp>

#include "sections.hpp"

namespace hpcai::report {
namespace {

constexpr std::size_t kUnfoldedReasons = 8;

/// "1 node", "2 nodes".
std::string grouped_count(std::int64_t count, std::string_view name) {
    return fmt::format("{} {}{}", format_count(count), name, count == 1 ? "" : "s");
}

/// Why a run without a usable score is INVALID.
std::string_view meaning_of_invalid(const VerdictRecord& verdict) {
    const auto is_broken = [](const RuleRecord& rule) { return !rule.kept; };
    if (verdict.exit_code != ExitCode::invalid) return "No base model finished; there is no score.";
    if (std::ranges::any_of(verdict.rules, is_broken)) {
        return "The run broke the rules below; its score may not be used.";
    }
    return "The run has no score that is a number.";
}

/// What a verdict says, for who has not read the rules.
std::string_view meaning_of(const VerdictRecord& verdict) {
    switch (verdict.status) {
        case Status::valid:
            return "The run kept every rule of its level that the program checks.";
        case Status::invalid:
            return meaning_of_invalid(verdict);
        case Status::partial:
            return "Some base models are missing from the ensemble.";
        case Status::custom:
            return "The run finished outside the rules of any level.";
    }
    return "";
}

/// The rules that the run had to keep, broken ones first.
Markup rules(const VerdictRecord& verdict) {
    if (verdict.rules.empty()) return {};
    Table rows;
    rows.columns = {"rule", left("what"), left("required"), left("found"), left("")};
    rows.unfolded = verdict.rules.size();
    std::size_t broken = 0;
    for (const bool kept : {false, true}) {
        for (const RuleRecord& rule : verdict.rules) {
            if (rule.kept != kept) continue;
            broken += kept ? 0 : 1;
            rows.rows.push_back(
                row(rule.number, rule.what, rule.required, rule.found, kept ? "kept" : "broken"));
        }
    }
    const std::string title =
        fmt::format("{} of docs/RULES.md, {} broken",
                    grouped_count(std::ssize(verdict.rules), "condition"), broken);
    return folded(title, table(rows));
}

Markup header(const RunRecord& record) {
    return element("header",
                   {element(R"(p class="kicker")", {text("HPC AI500 V3.0 \xC2\xB7 Result")}),
                    element("h1", {text(record.name)}),
                    element(R"(p class="byline")",
                            {text(fmt::format("{}, {}. Started {}. hpcai500 {}.",
                                              record.workload.kind, record.workload.model,
                                              record.time.started_utc, record.program_version))})});
}

/// A large number over its name.
Markup figure_of(std::string_view value, std::string_view name, std::string_view detail) {
    return element("div", {element("dt", {text(name)}), element("dd", {text(value)}),
                           element(R"(dd class="reason")", {text(detail)})});
}

std::string or_reason(const Quantity& quantity, const std::string& detail) {
    return number(quantity, "{}") != "n/a" ? detail
           : quantity.reason.empty()       ? "not measured"
                                           : quantity.reason;
}

std::string human(const Quantity& flops, const std::string& source) {
    return or_reason(flops,
                     fmt::format("{}, {}", format_flops_human(flops.value.value_or(0)), source));
}

Markup footer(const RunRecord& record) {
    return element("footer",
                   {paragraph(fmt::format(
                       "Made by hpcai500 {} from result.json ({}) and the groups' steps.csv. "
                       "docs/METRICS.md defines every number.",
                       record.program_version, record.schema))});
}

}  // namespace

Markup verdict_section(const RunRecord& record) {
    const VerdictRecord& verdict = record.verdict;
    const std::string word(word_of(verdict.status));
    const std::string state =
        fmt::format("{} It {} be ranked. Exit code {}.", meaning_of(verdict),
                    verdict.rankable ? "can" : "cannot", static_cast<int>(verdict.exit_code));
    return element(
               fmt::format(R"(section id="verdict" class="{}" aria-labelledby="verdict-title")",
                           word),
               {element(R"(h2 id="verdict-title")", {text(word)}), paragraph(state),
                reasons(verdict.reasons, kUnfoldedReasons, "more reasons"),
                element(R"(p class="result-line")", {element("code", {text(result_line(record))})}),
                rules(verdict)}) +
           Markup{"\n"};
}

namespace {

std::string vote_of(const RunRecord& record) {
    const auto finished = std::ranges::count_if(
        record.work.groups, [](const GroupRecord& group) { return group.failure.empty(); });
    const std::string& way = record.workload.aggregation;
    if (finished == 0) return "None finished.";
    if (finished == record.topology.groups) {
        return fmt::format("Their votes were combined by {}.", way);
    }
    return fmt::format("The votes of the {} that finished were combined by {}.", finished, way);
}

}  // namespace

Markup headline(const RunRecord& record) {
    const QualityRecord& quality = record.quality;
    const ScoresRecord& scores = record.scores;
    const WorkloadRecord& work = record.workload;
    const Quantity& seconds = record.time.training_seconds;
    const TopologyRecord& topology = record.topology;
    const std::string story = fmt::format(
        "{} ({}), trained at the same time, each by {}, on {} of {}: {} over bootstraps ({}) "
        "of {} in batches of {}, computed in {}. {}",
        grouped_count(topology.groups, "base model"), work.model,
        grouped_count(topology.degree, "rank"), grouped_count(topology.ranks, "rank"),
        grouped_count(topology.nodes, "node"), grouped_count(work.epochs, "epoch"), work.sampler,
        grouped_count(work.training_samples, "sample"), work.batch_size, work.precision,
        vote_of(record));
    return element(
               R"(section id="headline" aria-label="Headline numbers")",
               {element(
                    R"(dl class="headline")",
                    {figure_of(flops_text(scores.vflops), "VFLOPS", human(scores.vflops, "eq. 7")),
                     figure_of(flops_text(scores.flops), "FLOPS", human(scores.flops, "eq. 6")),
                     figure_of(
                         quality_text(quality.ensemble), "quality",
                         or_reason(quality.ensemble, metric_name(quality.metric) + ", target " +
                                                         quality_text({quality.target, ""}))),
                     figure_of(number(seconds, "{:.2f}") + (seconds.value ? "\xC2\xA0s" : ""),
                               "training", or_reason(seconds, "of the slowest group"))}),
                paragraph(story)}) +
           Markup{"\n"};
}

std::string html(const PageContent& content) {
    const RunRecord& record = content.record;
    const Markup head =
        Markup{R"(<meta charset="utf-8">)"
               R"(<meta name="viewport" content="width=device-width, initial-scale=1">)"
               R"(<meta name="color-scheme" content="light dark">)"
               R"(<link rel="icon" href="data:,">)"} +
        element("title", {text(fmt::format("{}: {} \xE2\x80\x93 hpcai500",
                                           word_of(record.verdict.status), record.name))}) +
        element("style", {Markup{std::string(style_sheet())}});
    const Markup main = element(
        "main", {verdict_section(record), headline(record), groups_section(record),
                 quality_section(content), classes_section(record.quality), time_section(content),
                 utilization_section(content), communication_section(record),
                 energy_section(record), flops_section(content), settings_sections(record)});
    const Markup page =
        element(R"(html lang="en")",
                {element("head", {head}), Markup{"\n"},
                 element("body", {header(record), Markup{"\n"}, main, footer(record)})});
    return "<!DOCTYPE html>\n" + page.html + "\n";
}

}  // namespace hpcai::report
