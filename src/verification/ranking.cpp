// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/report/record_text.hpp>
#include <hpcai/verification/ranking.hpp>

namespace hpcai::verification {
namespace {

constexpr int kMiniRuns = 3;  // required of a result of problem class mini

/// Returns "NVIDIA H100 * 8": the number of ranks with each device. A comma separates the name of a
/// device from its software.
std::string accelerators_of(const RunRecord& record) {
    std::map<std::string, int> counts;
    for (const PlaceRecord& place : record.topology.map) {
        ++counts[place.device.substr(0, place.device.find(','))];
    }
    std::string text;
    for (const auto& [device, count] : counts) {
        text += fmt::format("{}{} * {}", text.empty() ? "" : " + ", device, count);
    }
    return text.empty() ? fmt::format("{} ranks", record.topology.ranks) : text;
}

/// Returns "System, Organization", or the one that is given, or the name of the run.
std::string source_of(const RunRecord& record) {
    const SubmissionRecord& submission = record.submission;
    if (submission.system_name.empty() || submission.organization.empty()) {
        const std::string name = submission.system_name + submission.organization;
        return name.empty() ? record.name : name;
    }
    return fmt::format("{}, {}", submission.system_name, submission.organization);
}

/// Returns true unless a mini result has too few counted runs or has uncounted runs, which could
/// change the median.
bool has_required_runs(const Submission& submission) {
    return submission.record.workload.problem_class != "mini" ||
           (submission.counted_runs >= kMiniRuns && submission.uncounted_runs == 0);
}

RankingRow row_of(const Submission& submission) {
    const RunRecord& record = submission.record;
    RankingRow row;
    row.source = source_of(record);
    row.run = record.name;
    row.system = record.submission.system_name;
    row.organization = record.submission.organization;
    row.verdict = word_of(record.verdict.status);
    row.vflops = record.scores.vflops;
    row.flops = record.scores.flops;
    row.groups = record.topology.groups;
    row.degree = record.topology.degree;
    row.started_utc = record.time.started_utc;
    row.minutes = record.time.training_seconds;
    if (row.minutes.value) *row.minutes.value /= 60;
    row.quality = record.quality.ensemble;
    row.accelerators = accelerators_of(record);
    row.framework = "hpcai500 " + record.program_version;
    row.level = record.workload.level;
    row.manifest = submission.manifest;
    if (!record.verdict.rankable && !record.verdict.reasons.empty()) {
        row.note = record.verdict.reasons.front();
    }
    const auto note = [&](const std::string& text) {
        row.note += (row.note.empty() ? "" : "; ") + text;
    };
    const int all = submission.counted_runs + submission.uncounted_runs;
    if (submission.uncounted_runs > 0) {
        note(fmt::format("median of {} of {} runs", submission.counted_runs, all));
    } else if (all > 1) {
        note(fmt::format("median of {} runs", all));
    }
    if (!has_required_runs(submission))
        note(fmt::format("the rules require {} runs, all of them VALID", kMiniRuns));
    if (!submission.is_verified) note("not verified");
    return row;
}

bool is_rankable(const Submission& submission) {
    return submission.is_verified && submission.record.verdict.rankable &&
           has_required_runs(submission) && submission.record.scores.vflops.value;
}

Ranking rank_problem(std::vector<const Submission*> submissions) {
    const auto by_name = [](const Submission* a) { return a->record.name; };
    std::ranges::stable_sort(submissions, {}, by_name);
    std::ranges::stable_sort(submissions, std::ranges::greater{}, [](const Submission* a) {
        return std::pair{is_rankable(*a), a->record.scores.vflops.value};
    });
    const RunRecord& first = submissions.front()->record;
    Ranking ranking{report::problem_name(first.workload), metric_name(first.quality.metric), {}};
    for (const Submission* submission : submissions) {
        RankingRow row = row_of(*submission);
        if (is_rankable(*submission)) {
            const bool is_equal =
                !ranking.rows.empty() && ranking.rows.back().vflops.value == row.vflops.value;
            row.rank =
                is_equal ? ranking.rows.back().rank : static_cast<int>(ranking.rows.size()) + 1;
        }
        ranking.rows.push_back(std::move(row));
    }
    return ranking;
}

std::string number(const Quantity& quantity, fmt::string_view format) {
    return quantity.value ? fmt::format(fmt::runtime(format), *quantity.value) : "n/a";
}

struct Column {
    const char* name;
    bool is_number;
    std::string (*text)(const RankingRow& row);
};

constexpr Column kColumns[] = {
    {"rank", true,
     [](const RankingRow& row) { return row.rank > 0 ? std::to_string(row.rank) : "-"; }},
    {"source", false, [](const RankingRow& row) { return row.source; }},
    {"VFLOPS", true, [](const RankingRow& row) { return number(row.vflops, "{:.3e}"); }},
    {"FLOPS", true, [](const RankingRow& row) { return number(row.flops, "{:.3e}"); }},
    {"minutes", true, [](const RankingRow& row) { return number(row.minutes, "{:.2f}"); }},
    {"quality", true, [](const RankingRow& row) { return number(row.quality, "{:.4f}"); }},
    {"accelerators", false, [](const RankingRow& row) { return row.accelerators; }},
    {"M x P", false,
     [](const RankingRow& row) { return fmt::format("{} x {}", row.groups, row.degree); }},
    {"date", false, [](const RankingRow& row) { return row.started_utc.substr(0, 10); }},
    {"framework", false, [](const RankingRow& row) { return row.framework; }},
    {"level", false, [](const RankingRow& row) { return row.level; }},
    {"verdict", false, [](const RankingRow& row) { return row.verdict; }},
    {"note", false, [](const RankingRow& row) { return row.note; }},
};

std::string csv_cell(const nlohmann::ordered_json& value) {
    if (value.is_number_float()) return fmt::format("{}", value.get<double>());
    if (!value.is_string()) return value.is_null() ? "" : value.dump();
    constexpr std::string_view kFormula = "=+-@\t\r";
    std::string text = value;
    if (!text.empty() && kFormula.find(text.front()) != kFormula.npos) text = "'" + text;
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
    return quoted + "\"";
}

constexpr const char* kPage = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>HPC AI500 ranking</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; }}
div {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; padding: .35em .7em; border-bottom: 1px solid #8886; }}
td.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
tr.unranked {{ opacity: .65; }}
</style></head><body>
<h1>HPC AI500 V3.0 ranking</h1>
{}</body></html>
)";

std::string html_table(const Ranking& ranking) {
    std::string html = fmt::format("<h2>{}</h2>\n<p>Quality: {}.</p>\n<div><table><tr>",
                                   escape_html(ranking.workload), escape_html(ranking.metric));
    for (const Column& column : kColumns) html += fmt::format("<th>{}</th>", column.name);
    html += "</tr>\n";
    for (const RankingRow& row : ranking.rows) {
        html += row.rank > 0 ? "<tr>" : "<tr class=\"unranked\">";
        for (const Column& column : kColumns) {
            html += fmt::format("<td{}>{}</td>", column.is_number ? " class=\"number\"" : "",
                                escape_html(printable(column.text(row))));
        }
        html += "</tr>\n";
    }
    return html + "</table></div>\n";
}

std::string text_table(const Ranking& ranking) {
    std::vector<std::string> lines(ranking.rows.size() + 1);
    for (const Column& column : kColumns) {
        std::vector<std::string> cells{column.name};
        for (const RankingRow& row : ranking.rows) cells.push_back(printable(column.text(row)));
        const std::size_t width = std::ranges::max(cells, {}, &std::string::size).size();
        for (std::size_t line = 0; line < lines.size(); ++line)
            lines[line] += fmt::format("{:<{}}  ", cells[line], width);
    }
    std::string text;
    for (const std::string& line : lines)
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    return text;
}

nlohmann::ordered_json values_of(const Ranking& ranking, const RankingRow& row) {
    const auto optional = [](const Quantity& quantity) {
        return quantity.value ? nlohmann::ordered_json(*quantity.value) : nlohmann::ordered_json();
    };
    return {{"workload", ranking.workload},
            {"rank", row.rank > 0 ? nlohmann::ordered_json(row.rank) : nlohmann::ordered_json()},
            {"source", row.source},
            {"system", row.system},
            {"organization", row.organization},
            {"run", row.run},
            {"started_utc", row.started_utc},
            {"vflops", optional(row.vflops)},
            {"flops", optional(row.flops)},
            {"minutes", optional(row.minutes)},
            {"quality", optional(row.quality)},
            {"metric", ranking.metric},
            {"accelerators", row.accelerators},
            {"M", row.groups},
            {"P_degree", row.degree},
            {"framework", row.framework},
            {"level", row.level},
            {"verdict", row.verdict},
            {"manifest", row.manifest},
            {"note", row.note}};
}

std::vector<nlohmann::ordered_json> all_values(const std::vector<Ranking>& rankings) {
    std::vector<nlohmann::ordered_json> rows;
    for (const Ranking& ranking : rankings) {
        for (const RankingRow& row : ranking.rows) rows.push_back(values_of(ranking, row));
    }
    return rows;
}

}  // namespace

std::vector<Ranking> rank(const std::vector<Submission>& submissions) {
    std::map<std::string, std::vector<const Submission*>> by_problem;
    std::map<std::string, std::string> seen;
    for (const Submission& submission : submissions) {
        const auto [first, is_new] = seen.emplace(submission.manifest, submission.directory);
        require(is_new || submission.manifest.empty(), ExitCode::usage,
                "rank: {} and {} are the same result: manifest {}", printable(first->second),
                printable(submission.directory), submission.manifest);
        by_problem[report::problem_name(submission.record.workload)].push_back(&submission);
    }
    std::vector<Ranking> rankings;
    for (const auto& [problem, rows] : by_problem) rankings.push_back(rank_problem(rows));
    return rankings;
}

std::string to_text(const std::vector<Ranking>& rankings) {
    std::string text;
    for (const Ranking& ranking : rankings) {
        text += fmt::format("{}{}, quality by {}\n", text.empty() ? "" : "\n",
                            printable(ranking.workload), printable(ranking.metric));
        text += text_table(ranking);
    }
    return text;
}

std::string to_csv(const std::vector<Ranking>& rankings) {
    std::vector<std::string> names;
    const nlohmann::ordered_json columns = values_of({}, {});
    for (const auto& [name, value] : columns.items()) names.push_back(name);
    std::string text = fmt::format("{}\r\n", fmt::join(names, ","));
    for (const nlohmann::ordered_json& row : all_values(rankings)) {
        std::vector<std::string> cells;
        for (const nlohmann::ordered_json& value : row) cells.push_back(csv_cell(value));
        text += fmt::format("{}\r\n", fmt::join(cells, ","));
    }
    return text;
}

std::string to_json(const std::vector<Ranking>& rankings) {
    return nlohmann::ordered_json(all_values(rankings)).dump(2) + "\n";
}

std::string to_html(const std::vector<Ranking>& rankings) {
    std::string tables;
    for (const Ranking& ranking : rankings) tables += html_table(ranking);
    return fmt::format(kPage, tables);
}

}  // namespace hpcai::verification
