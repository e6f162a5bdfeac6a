// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/csv.hpp>
#include <hpcai/report/html.hpp>
#include <hpcai/verification/ranking.hpp>

namespace hpcai::verification {
namespace {

using nlohmann::ordered_json;

/// Returns the keys and values of a row in CSV and JSON.
ordered_json values_of(const Ranking& ranking, const RankingRow& row) {
    const RunRecord& record = row.submission.record;
    const auto& search = record.search;
    return {{"workload", ranking.workload},
            {"rank", row.rank > 0 ? ordered_json(row.rank) : ordered_json()},
            {"source", row.source},
            {"system", record.submission.system_name},
            {"organization", record.submission.organization},
            {"run", record.name},
            {"started_utc", record.time.started_utc},
            {"vflops", records::number_or_null(record.scores.vflops)},
            {"flops", records::number_or_null(record.scores.flops)},
            {"regulated", search ? ordered_json(search->regulated) : ordered_json()},
            {"ops", search ? ordered_json(search->ops) : ordered_json()},
            {"best_accuracy", search ? ordered_json(search->best_accuracy) : ordered_json()},
            {"minutes", records::number_or_null(row.minutes)},
            {"quality", records::number_or_null(record.quality.ensemble)},
            {"metric", ranking.metric},
            {"accelerators", row.accelerators},
            {"M", record.topology.groups},
            {"P_degree", record.topology.degree},
            {"framework", "hpcai500 " + record.program_version},
            {"level", record.workload.level},
            {"verdict", word_of(record.verdict.status)},
            {"manifest", row.submission.manifest},
            {"directory", row.submission.directory},
            {"note", row.note}};
}

/// A column of the HTML table. The text table has details below each row.
struct Column {
    const char* name;
    const char* key;  // in values_of()
    const char* format = "{}";
    bool is_detail = false;
    std::optional<bool> is_of_searches = {};  // absent: in every table
};

constexpr Column kColumns[] = {
    {"rank", "rank"},
    {"source", "source", "{}", true},
    {"regulated", "regulated", "{:.3e}", false, true},
    {"OPS", "ops", "{:.3e}", false, true},
    {"accuracy", "best_accuracy", "{:.4f}", false, true},
    {"VFLOPS", "vflops", "{:.3e}", false, false},
    {"FLOPS", "flops", "{:.3e}", false, false},
    {"minutes", "minutes", "{:.2f}"},
    {"quality", "quality", "{:.4f}"},
    {"accelerators", "accelerators", "{}", true},
    {"M", "M"},
    {"P_degree", "P_degree"},
    {"date", "started_utc", "{:.10}", true},
    {"framework", "framework", "{}", true},
    {"level", "level", "{}", true},
    {"verdict", "verdict", "{}", true},
    {"directory", "directory", "{}", true},
    {"note", "note", "{}", true},
};

std::vector<Column> columns_of(const Ranking& ranking) {
    const bool is_search = ranking.workload.starts_with(kSearchKind);
    std::vector<Column> columns;
    for (const Column& column : kColumns)
        if (column.is_of_searches.value_or(is_search) == is_search) columns.push_back(column);
    return columns;
}

std::string cell(const ordered_json& values, const Column& column) {
    const ordered_json& value = values[column.key];
    const auto format = fmt::runtime(column.format);
    if (value.is_null()) return "-";
    if (value.is_string()) return printable(fmt::format(format, value.get<std::string>()));
    return value.is_number_float() ? fmt::format(format, value.get<double>()) : value.dump();
}

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
    const std::vector<Column> columns = columns_of(ranking);
    std::string html =
        fmt::format("<h2>{}</h2>\n<p>Quality: {}.</p>\n<div class=\"wide\"><table><thead><tr>",
                    escape_html(ranking.workload), escape_html(ranking.metric));
    for (const Column& column : columns) html += fmt::format("<th>{}</th>", column.name);
    html += "</tr></thead>\n";
    for (const RankingRow& row : ranking.rows) {
        const ordered_json values = values_of(ranking, row);
        const std::string& report = row.submission.report;
        html += row.rank > 0 ? "<tr>" : "<tr class=\"reason\">";
        for (const Column& column : columns) {
            std::string text = escape_html(cell(values, column));
            if (column.name == std::string_view("source") && !report.empty())
                text = fmt::format("<a href=\"{}\">{}</a>", href_of(report), text);
            html += fmt::format("<td{}>{}</td>",
                                values[column.key].is_string() ? "" : " class=\"n\"", text);
        }
        html += "</tr>\n";
    }
    return html + "</table></div>\n";
}

std::string text_table(const Ranking& ranking) {
    std::vector<std::string> lines(ranking.rows.size() + 1), details(lines.size());
    for (const Column& column : columns_of(ranking)) {
        std::vector<std::string> cells{column.name};
        for (const RankingRow& row : ranking.rows)
            cells.push_back(cell(values_of(ranking, row), column));
        const std::size_t width = std::ranges::max(cells, {}, &std::string::size).size();
        for (std::size_t line = 0; line < lines.size(); ++line) {
            if (!column.is_detail)
                lines[line] += fmt::format("{:<{}}  ", cells[line], width);
            else if (!cells[line].empty())
                details[line] += fmt::format("; {}: {}", column.name, cells[line]);
        }
    }
    std::string text;
    for (std::size_t line = 0; line < lines.size(); ++line) {
        text += lines[line].substr(0, lines[line].find_last_not_of(' ') + 1) + "\n";
        if (line > 0) text += wrap("      " + details[line].substr(2), 6) + "\n";
    }
    return text;
}

}  // namespace

std::string to_text(const std::vector<Ranking>& rankings) {
    std::string text;
    for (const Ranking& ranking : rankings) {
        text += fmt::format("{}Ranking of {}, quality by {}\n", text.empty() ? "" : "\n",
                            printable(ranking.workload), printable(ranking.metric));
        text += text_table(ranking);
    }
    return text;
}

std::string to_csv(const std::vector<Ranking>& rankings) {
    return report::csv_of_json(to_json(rankings));
}

std::string to_json(const std::vector<Ranking>& rankings) {
    ordered_json rows = ordered_json::array();
    for (const Ranking& ranking : rankings)
        for (const RankingRow& row : ranking.rows) rows.push_back(values_of(ranking, row));
    return rows.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string to_html(const std::vector<Ranking>& rankings) {
    std::string body = "<main class=\"ranking\"><h1>HPC AI500 V3.0 ranking</h1>\n";
    for (const Ranking& ranking : rankings) body += html_table(ranking);
    std::string page = report::page("HPC AI500 ranking", body + "</main>");
    // Distinguishes the page from reports, which `rank` must not replace.
    return page.insert(page.find('\n') + 1, "<!-- HPC AI500 ranking -->\n");
}

}  // namespace hpcai::verification
