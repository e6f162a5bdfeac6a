// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <initializer_list>

#include <hpcai/records/run_record.hpp>

#include "lines.hpp"

/// The elements and sections of a page.
namespace hpcai::report {

/// HTML. External text becomes Markup only through text(), which escapes it.
struct Markup {
    std::string html;

    Markup& operator+=(const Markup& other) {
        html += other.html;
        return *this;
    }
    friend Markup operator+(Markup left, const Markup& right) { return left += right; }
};

Markup text(std::string_view text);

/// <`open`>children</...>, where `open` is a name with attributes: `p class="note"`. External
/// values of attributes must come from text().
Markup element(std::string_view open, std::initializer_list<Markup> children);

/// A column of a table, right-aligned for numbers. left() makes a left-aligned one for texts.
struct Column {
    Column(const char* heading) : name(heading) {}
    explicit Column(std::string heading) : name(std::move(heading)) {}

    std::string name;
    bool is_left = false;
};

inline Column left(const char* heading) {
    Column column(heading);
    column.is_left = true;
    return column;
}

inline Markup cell(Markup markup) {
    return markup;
}
inline Markup cell(std::string_view words) {
    return text(words);
}
inline Markup cell(std::integral auto number) {
    return text(std::to_string(number));
}

/// A row of a table from texts, integers and Markup.
std::vector<Markup> row(const auto&... cells) {
    return {cell(cells)...};
}

/// A table; the first cell of each row is the row's header.
struct Table {
    std::string caption = {};  // may be empty
    std::vector<Column> columns = {};
    std::vector<std::vector<Markup>> rows = {};
    std::vector<std::vector<Markup>> totals = {};  // below the rows
    std::size_t unfolded = 12;  // rows always shown; if three or more rows follow, they are folded
};

Markup table(const Table& table);

/// A row of facts(), a list of names and values. `note` follows the value unless that is "n/a".
struct Fact {
    std::string name;
    Markup value;
    std::string note = {};
};

Markup facts(const std::vector<Fact>& facts);

Markup section(std::string_view id, std::string_view title, const Markup& content);
Markup paragraph(std::string_view text);
Markup note(std::string_view text);
Markup folded(std::string_view summary, const Markup& content);

/// An address relative to the page, and the text of its link.
struct Link {
    std::string address;
    std::string name;
};

Markup links(std::string_view label, const std::vector<Link>& links);

/// A list of `lines`; lines after the first `unfolded` are folded under a title such as "5 <more>".
Markup reasons(const std::vector<std::string>& lines, std::size_t unfolded, std::string_view more);

Quantity percent_of(const Quantity& share);

/// Returns number() and `unit`, or "n/a" and the reason.
Markup quantity(const Quantity& quantity, std::string_view format, std::string_view unit = "");

/// Returns bytes_text(), or "n/a" and the reason.
Markup bytes_quantity(const Quantity& quantity);

struct PageContent;

// The sections of the page.
Markup verdict_section(const RunRecord& record);
Markup headline(const RunRecord& record);
Markup groups_section(const RunRecord& record);
/// Empty if the run is no architecture search.
Markup search_section(const RunRecord& record);
Markup quality_section(const PageContent& content);
Markup time_section(const PageContent& content);
Markup utilization_section(const PageContent& content);
Markup communication_section(const RunRecord& record);
Markup energy_section(const RunRecord& record);
Markup flops_section(const PageContent& content);
Markup settings_sections(const RunRecord& record);

extern const std::string_view kStyleSheet;

}  // namespace hpcai::report
