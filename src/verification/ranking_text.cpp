// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/text.hpp>
#include <hpcai/verification/ranking.hpp>

namespace hpcai::verification {
namespace {

using Cells = std::array<std::string, 10>;

constexpr const char* kColumns[] = {"rank",         "source",    "VFLOPS", "minutes", "quality",
                                    "accelerators", "framework", "level",  "verdict", "note"};

std::string number(const Quantity& quantity, fmt::string_view format) {
    return quantity.value ? fmt::format(fmt::runtime(format), *quantity.value) : "n/a";
}

Cells cells_of(const RankingRow& row) {
    return {row.rank > 0 ? std::to_string(row.rank) : "-",
            row.source,
            number(row.vflops, "{:.3e}"),
            number(row.minutes, "{:.2f}"),
            number(row.quality, "{:.4f}"),
            row.accelerators,
            row.framework,
            row.level,
            row.verdict,
            row.note};
}

std::string csv_cell(std::string text) {
    constexpr std::string_view kFormula = "=+-@\t\r";
    if (!text.empty() && kFormula.find(text.front()) != kFormula.npos) text = "'" + text;
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
    return quoted + "\"";
}

std::string csv_number(const Quantity& quantity) {
    return quantity.value ? fmt::format("{}", *quantity.value) : "";
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
    for (const char* column : kColumns) html += fmt::format("<th>{}</th>", column);
    html += "</tr>\n";
    for (const RankingRow& row : ranking.rows) {
        html += row.rank > 0 ? "<tr>" : "<tr class=\"unranked\">";
        const Cells cells = cells_of(row);
        for (std::size_t column = 0; column < cells.size(); ++column) {
            const bool is_number = column == 0 || (column >= 2 && column <= 4);
            html += fmt::format("<td{}>{}</td>", is_number ? " class=\"number\"" : "",
                                escape_html(printable(cells[column])));
        }
        html += "</tr>\n";
    }
    return html + "</table></div>\n";
}

std::string text_table(const Ranking& ranking) {
    std::vector<Cells> lines(1);
    std::ranges::copy(kColumns, lines.front().begin());
    for (const RankingRow& row : ranking.rows) lines.push_back(cells_of(row));
    std::array<std::size_t, std::tuple_size_v<Cells>> widths{};
    for (Cells& cells : lines) {
        for (std::size_t column = 0; column < cells.size(); ++column) {
            cells[column] = printable(cells[column]);
            widths[column] = std::max(widths[column], cells[column].size());
        }
    }
    std::string text;
    for (const Cells& cells : lines) {
        std::string line;
        for (std::size_t column = 0; column < cells.size(); ++column) {
            line += fmt::format("{:<{}}  ", cells[column], widths[column]);
        }
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
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
    std::string text =
        "workload,rank,source,system,organization,run,vflops,minutes,quality,metric,accelerators,"
        "framework,level,verdict,manifest,note\r\n";
    for (const Ranking& ranking : rankings) {
        for (const RankingRow& row : ranking.rows) {
            const std::array cells{csv_cell(ranking.workload),
                                   row.rank > 0 ? std::to_string(row.rank) : std::string(),
                                   csv_cell(row.source),
                                   csv_cell(row.system),
                                   csv_cell(row.organization),
                                   csv_cell(row.run),
                                   csv_number(row.vflops),
                                   csv_number(row.minutes),
                                   csv_number(row.quality),
                                   csv_cell(ranking.metric),
                                   csv_cell(row.accelerators),
                                   csv_cell(row.framework),
                                   csv_cell(row.level),
                                   row.verdict,
                                   row.manifest,
                                   csv_cell(row.note)};
            text += fmt::format("{}\r\n", fmt::join(cells, ","));
        }
    }
    return text;
}

std::string to_html(const std::vector<Ranking>& rankings) {
    std::string tables;
    for (const Ranking& ranking : rankings) tables += html_table(ranking);
    return fmt::format(kPage, tables);
}

}  // namespace hpcai::verification
