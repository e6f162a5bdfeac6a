// SPDX-License-Identifier: Apache-2.0
#include "markup.hpp"

#include <span>

#include <hpcai/base/text.hpp>

namespace hpcai::report {
namespace {

std::string cell_tag(std::string_view name, const Column& column, std::string_view scope) {
    return fmt::format("{}{}{}", name, scope.empty() ? "" : fmt::format(R"( scope="{}")", scope),
                       column.is_left ? "" : R"( class="n")");
}

Markup body_rows(const Table& table, std::span<const std::vector<Markup>> rows) {
    Markup body;
    for (const std::vector<Markup>& row : rows) {
        ensure(row.size() == table.columns.size(), "{} cells in {} columns", row.size(),
               table.columns.size());
        body.html += "<tr>";
        for (std::size_t index = 0; index < row.size(); ++index) {
            const bool is_th = index == 0;
            body += element(cell_tag(is_th ? "th" : "td", table.columns[index], is_th ? "row" : ""),
                            {row[index]});
        }
        body.html += "</tr>\n";
    }
    return body;
}

/// A table element with `rows`, which are some of the table's rows.
Markup table_part(const Table& table, std::span<const std::vector<Markup>> rows, bool with_totals) {
    Markup head;
    for (const Column& column : table.columns) {
        head += element(cell_tag("th", column, "col"), {text(column.name)});
    }
    Markup content = element("thead", {element("tr", {head})});
    content += element("tbody", {body_rows(table, rows)});
    if (with_totals && !table.totals.empty()) {
        content += element("tfoot", {body_rows(table, table.totals)});
    }
    const std::string label = text(table.caption).html;
    return element(
        R"(div class="wide" tabindex="0" role="group")",
        {element(label.empty() ? "table" : fmt::format(R"(table aria-label="{}")", label),
                 {content})});
}

}  // namespace

Markup text(std::string_view text) {
    return {escape_html(text)};
}

Markup element(std::string_view open, std::initializer_list<Markup> children) {
    Markup result{"<" + std::string(open) + ">"};
    for (const Markup& child : children) result += child;
    result.html += "</" + std::string(open.substr(0, open.find(' '))) + ">";
    return result;
}

Markup table(const Table& table) {
    // One or two rows are not folded.
    const bool is_folded = table.rows.size() > table.unfolded + 2;
    const std::span<const std::vector<Markup>> rows(table.rows);
    // The caption does not scroll with the table.
    const Markup caption =
        table.caption.empty() ? Markup{} : element(R"(p class="caption")", {text(table.caption)});
    if (!is_folded) return caption + table_part(table, rows, true);
    const std::size_t rest = rows.size() - table.unfolded;
    return caption + table_part(table, rows.first(table.unfolded), true) +
           folded(fmt::format("{} more rows", format_count(static_cast<std::int64_t>(rest))),
                  table_part(table, rows.last(rest), false));
}

Markup facts(const std::vector<Fact>& facts) {
    Markup rows;
    for (const Fact& fact : facts) {
        Markup value = fact.value;
        if (!fact.note.empty() && !fact.value.html.starts_with("n/a ")) {
            value += Markup{" "} + element(R"(span class="reason")", {text(fact.note)});
        }
        rows += element("tr",
                        {element(R"(th scope="row")", {text(fact.name)}), element("td", {value})});
    }
    return element(R"(table class="facts")", {element("tbody", {rows})});
}

Markup section(std::string_view id, std::string_view title, const Markup& content) {
    return element(fmt::format(R"(section id="{0}" aria-labelledby="{0}-title")", id),
                   {element(fmt::format(R"(h2 id="{}-title")", id), {text(title)}), content}) +
           Markup{"\n"};
}

Markup paragraph(std::string_view words) {
    return element("p", {text(words)});
}

Markup note(std::string_view words) {
    return element(R"(p class="note")", {text(words)});
}

Markup folded(std::string_view summary, const Markup& content) {
    return element("details", {element("summary", {text(summary)}), content});
}

Markup links(std::string_view label, const std::vector<Link>& links) {
    Markup result;
    for (const auto& [address, name] : links) {
        result += element(fmt::format(R"(a href="{}")", text(address).html), {text(name)});
    }
    return element(fmt::format(R"(nav class="links" aria-label="{}")", label), {result});
}

Markup reasons(const std::vector<std::string>& lines, std::size_t unfolded, std::string_view more) {
    constexpr const char* kList = R"(ul class="reasons")";
    Markup first, rest;
    for (std::size_t index = 0; index < lines.size(); ++index) {
        (index < unfolded ? first : rest) += element("li", {text(lines[index])});
    }
    Markup result;
    if (!first.html.empty()) result += element(kList, {first});
    if (!rest.html.empty()) {
        result +=
            folded(fmt::format("{} {}", lines.size() - unfolded, more), element(kList, {rest}));
    }
    return result;
}

Quantity percent_of(const Quantity& share) {
    return {share.value ? std::optional(100 * *share.value) : std::nullopt, share.reason};
}

Markup quantity(const Quantity& quantity, std::string_view format, std::string_view unit) {
    const bool is_known = is_finite(quantity);
    Markup result = text(number(quantity, format));
    if (is_known && !unit.empty()) result += text(std::string("\xC2\xA0") + std::string(unit));
    if (is_known) return result;
    const std::string reason = quantity.reason.empty() ? "not measured" : quantity.reason;
    return result + Markup{" "} + element(R"(span class="reason")", {text(reason)});
}

Markup bytes_quantity(const Quantity& bytes) {
    const bool is_valid = bytes.value && *bytes.value >= 0 && *bytes.value < 1e18;
    return is_valid ? text(bytes_text(static_cast<std::int64_t>(*bytes.value)))
                    : quantity({std::nullopt, bytes.reason}, "{}");
}

}  // namespace hpcai::report
