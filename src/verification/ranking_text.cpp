// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/verification/ranking.hpp>

namespace hpcai::verification {
namespace {

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

/// Returns the keys and values of a row in CSV and JSON.
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
