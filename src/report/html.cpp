// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include <hpcai/base/units.hpp>
#include <hpcai/report/html.hpp>
#include <hpcai/report/record_text.hpp>
#include <hpcai/report/summary.hpp>

#include "sections.hpp"

namespace hpcai::report {
namespace {

constexpr std::size_t kUnfoldedReasons = 8;

std::string_view meaning_of_invalid(const VerdictRecord& verdict) {
    const auto is_broken = [](const RuleRecord& rule) { return !rule.kept; };
    if (verdict.exit_code != ExitCode::invalid) return "No base model finished; there is no score.";
    if (std::ranges::any_of(verdict.rules, is_broken)) {
        return "The run broke the rules below; its score must not be used.";
    }
    return "The score of the run is not a number.";
}

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

/// The rules of the run, broken ones first.
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
    const std::string title = fmt::format("{} of docs/RULES.md, {} broken",
                                          counted(std::ssize(verdict.rules), "condition"), broken);
    return folded(title, table(rows));
}

Markup header(const RunRecord& record) {
    return element("header",
                   {element(R"(p class="kicker")", {text("HPC AI500 V3.0 \xC2\xB7 Result")}),
                    element("h1", {text(record.name)}),
                    element(R"(p class="byline")",
                            {text(fmt::format("{}, {}. Started {}. hpcai500 {}.",
                                              problem_name(record.workload), record.workload.model,
                                              record.time.started_utc, record.program_version))})});
}

/// The name of `quantity`, its `value` in large type, and a detail or why there is no value.
Markup card(std::string_view name, const Quantity& quantity, const std::string& value,
            const std::string& detail) {
    const bool is_known = is_finite(quantity);
    const std::string reason = quantity.reason.empty() ? "not measured" : quantity.reason;
    return element("div",
                   {element("dt", {text(name)}), element("dd", {text(is_known ? value : "n/a")}),
                    element(R"(dd class="reason")", {text(is_known ? detail : reason)})});
}

Markup flops_card(std::string_view name, const Quantity& flops, const char* source) {
    return card(name, flops, human_flops(flops), flops_text(flops) + ", " + source);
}

/// The score of a result whose score may be used.
Markup score(const RunRecord& record) {
    const Quantity& vflops = record.scores.vflops;
    const Status status = record.verdict.status;
    const bool is_usable = status == Status::valid || status == Status::custom;
    if (!is_usable || !is_finite(vflops)) return {};
    return element(R"(p class="score")",
                   {text(human_flops(vflops)), element("small", {text(" VFLOPS")})});
}

/// Links to the sections that `page` has.
Markup contents(const Markup& page) {
    constexpr std::array<std::pair<const char*, const char*>, 15> kSections{
        {{"groups", "Groups"},
         {"learning", "Learning"},
         {"ensemble", "Ensemble"},
         {"categories", "Categories"},
         {"segments", "Classes"},
         {"confusions", "Confusions"},
         {"time", "Time"},
         {"utilization", "Utilization"},
         {"communication", "Communication"},
         {"energy", "Energy"},
         {"flops", "Work"},
         {"submission", "Submission"},
         {"environment", "Environment"},
         {"parameters", "Parameters"},
         {"files", "Files"}}};
    std::vector<Link> present;
    for (const auto& [id, name] : kSections) {
        const std::string begin = fmt::format(R"(<section id="{}")", id);
        if (page.html.find(begin) != std::string::npos)
            present.push_back({fmt::format("#{}", id), name});
    }
    return links("Contents", present);
}

Markup files_section(const std::vector<std::string>& files) {
    if (files.empty()) return {};
    std::vector<Link> targets;
    for (const std::string& file : files) targets.push_back({file, file});
    return section("files", "Files", links("Files", targets));
}

Markup footer(const RunRecord& record) {
    return element("footer",
                   {paragraph(fmt::format(
                       "Generated by hpcai500 {} from result.json ({}) and the groups' steps.csv. "
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
               {score(record), element(R"(h2 id="verdict-title")", {text(word)}), paragraph(state),
                reasons(verdict.reasons, kUnfoldedReasons, "more reasons"),
                element(R"(p class="result-line")", {element("code", {text(result_line(record))})}),
                rules(verdict)}) +
           Markup{"\n"};
}

namespace {

std::string aggregation_text(const RunRecord& record) {
    const auto finished = std::ranges::count_if(
        record.work.groups, [](const GroupRecord& group) { return group.failure.empty(); });
    const std::string& aggregation = record.workload.aggregation;
    if (finished == 0) return "No base model finished.";
    if (finished == record.topology.groups) {
        return fmt::format("Their predictions were combined by {}.", aggregation);
    }
    return fmt::format("The predictions of the {} finished ones were combined by {}.", finished,
                       aggregation);
}

}  // namespace

Markup headline(const RunRecord& record) {
    const QualityRecord& quality = record.quality;
    const ScoresRecord& scores = record.scores;
    const WorkloadRecord& work = record.workload;
    const Quantity& seconds = record.time.training_seconds;
    const TopologyRecord& topology = record.topology;
    const std::string story = fmt::format(
        "{} ({}) trained at the same time, each by {}, on {} of {}. Each trained for {} on a "
        "bootstrap sample ({}) of {} in batches of {}, computed in {}. {}",
        counted(topology.groups, "base model"), work.model, counted(topology.degree, "rank"),
        counted(topology.ranks, "rank"), counted(topology.nodes, "node"),
        counted(work.epochs, "epoch"), work.sampler, counted(work.training_samples, "sample"),
        work.batch_size, work.precision, aggregation_text(record));
    const Quantity percent = percent_of(record.utilization.fraction);
    const Quantity& speed = record.throughput.images_per_second;
    const bool is_raised = scores.penalty_coefficient.value.value_or(0) > 1;
    return element(R"(section id="headline" aria-label="Headline numbers")",
                   {element(R"(dl class="headline")",
                            {flops_card("VFLOPS", scores.vflops, "eq. 7"),
                             flops_card("FLOPS", scores.flops, "eq. 6"),
                             card("quality", quality.ensemble, quality_text(quality.ensemble),
                                  fmt::format("{}, target {}", metric_name(quality.metric),
                                              quality_text({quality.target, ""}))),
                             card("training", seconds, number(seconds, "{:.2f}\xC2\xA0s"),
                                  "of the slowest group"),
                             card("samples/s", speed, number(speed, "{:.1f}"), "of all groups"),
                             card("utilization", percent, number(percent, "{:.1f}\xC2\xA0%"),
                                  "of the measured ceiling")}),
                    paragraph(story),
                    is_raised
                        ? paragraph("VFLOPS exceed FLOPS, because the quality is above the target.")
                        : Markup{}}) +
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
    const Markup sections = groups_section(record) + quality_section(content) +
                            classes_section(content) + time_section(content) +
                            utilization_section(content) + communication_section(record) +
                            energy_section(record) + flops_section(content) +
                            settings_sections(record) + files_section(content.files);
    const Markup main =
        element("main", {verdict_section(record), headline(record), contents(sections), sections});
    const Markup page =
        element(R"(html lang="en")",
                {element("head", {head}), Markup{"\n"},
                 element("body", {header(record), Markup{"\n"}, main, footer(record)})});
    return "<!DOCTYPE html>\n" + page.html + "\n";
}

}  // namespace hpcai::report
