// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/report/csv.hpp>
#include <hpcai/report/html.hpp>
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

/// Returns `path` as a relative URL.
std::string href_of(std::string_view path) {
    std::string url;
    for (const char letter : path) {
        const auto code = static_cast<unsigned char>(letter);
        const bool is_plain = std::isalnum(code) || std::strchr("-._~/", letter) != nullptr;
        url += is_plain ? std::string(1, letter) : fmt::format("%{:02X}", code);
    }
    return url;
}

std::string html_table(const Ranking& ranking) {
    std::string html =
        fmt::format("<h2>{}</h2>\n<p>Quality: {}.</p>\n<div class=\"wide\"><table><thead><tr>",
                    escape_html(ranking.workload), escape_html(ranking.metric));
    for (const Column& column : kColumns) html += fmt::format("<th>{}</th>", column.name);
    html += "</tr></thead>\n";
    for (const RankingRow& row : ranking.rows) {
        html += row.rank > 0 ? "<tr>" : "<tr class=\"reason\">";
        for (const Column& column : kColumns) {
            std::string cell = escape_html(printable(column.text(row)));
            if (std::string_view(column.name) == "source" && !row.report.empty())
                cell = fmt::format("<a href=\"{}\">{}</a>", href_of(row.report), cell);
            html += fmt::format("<td{}>{}</td>", column.is_number ? " class=\"n\"" : "", cell);
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
    return report::csv_of_json(to_json(rankings));
}

std::string to_json(const std::vector<Ranking>& rankings) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Ranking& ranking : rankings) {
        for (const RankingRow& row : ranking.rows) rows.push_back(values_of(ranking, row));
    }
    return rows.dump(2) + "\n";
}

std::string to_html(const std::vector<Ranking>& rankings) {
    std::string body = "<main class=\"ranking\"><h1>HPC AI500 V3.0 ranking</h1>\n";
    for (const Ranking& ranking : rankings) body += html_table(ranking);
    return report::page("HPC AI500 ranking", body + "</main>");
}

}  // namespace hpcai::verification
