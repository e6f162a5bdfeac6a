// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hpcai/records/run_record.hpp>

#include "lines.hpp"

/// What a page is put together from. Text becomes Markup by text() alone, which escapes it.
namespace hpcai::report {

struct Markup {
    std::string html;

    Markup& operator+=(const Markup& other) {
        html += other.html;
        return *this;
    }
    friend Markup operator+(Markup left, const Markup& right) { return left += right; }
};

/// `text` as a browser shows it, safe inside an element and inside a quoted attribute: letters of
/// HTML are escaped; control characters, what reverses the direction of writing, and bytes that are
/// no UTF-8 become U+FFFD. Line breaks and tabs stay.
Markup text(std::string_view text);

/// <`open`>children</...>, `open` being a name and attributes: `p class="note"`. Attributes' values
/// must come from text() where they come from outside.
Markup element(std::string_view open, std::initializer_list<Markup> children);

/// A column of a table. Numbers stand at its right; left() makes one of texts.
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

/// Rows of cells; the first cell of each is its header.
struct Table {
    std::string caption;  // may be empty
    std::vector<Column> columns;
    std::vector<std::vector<Markup>> rows;
    std::vector<std::vector<Markup>> totals = {};  // set off below the rows
    std::size_t unfolded = 12;  // rows that are always seen; the others fold, if there are many
};

Markup table(const Table& table);

/// A name and what it is, row by row.
struct Fact {
    std::string name;
    Markup value;
    std::string note = {};
};

Markup facts(const std::vector<Fact>& facts);

/// A heading and what belongs to it.
Markup section(std::string_view id, std::string_view title, const Markup& content);
Markup paragraph(std::string_view text);
Markup note(std::string_view text);
Markup folded(std::string_view summary, const Markup& content);

/// A list of `lines`, of which those after the first `unfolded` fold under "5 <more>".
Markup reasons(const std::vector<std::string>& lines, std::size_t unfolded, std::string_view more);

/// A share in per cent.
Quantity percent_of(const Quantity& share);

/// number() followed by `unit`; where there is no number, by the reason.
Markup quantity(const Quantity& quantity, std::string_view format, std::string_view unit = "");

/// Bytes for people; "n/a" with the reason where there are none.
Markup bytes_quantity(const Quantity& quantity);

}  // namespace hpcai::report
