// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/records/step_record.hpp>

/// Tables of records as comma-separated values: describe(columns, record) calls `columns` with the
/// name of each column and the record's value there.
namespace hpcai::report {

template <typename T, typename Record>
concept Any = std::same_as<std::remove_const_t<T>, Record>;  // const to write, mutable to read

template <typename Record>
std::string csv_header(const Record& any) {
    std::string line;
    auto add = [&](const char* name, const auto&) {
        line += (line.empty() ? "" : ",") + std::string(name);
    };
    describe(add, any);
    return line;
}

inline std::string csv_cell(std::integral auto value) {
    return fmt::format("{}", value);
}
inline std::string csv_cell(double value) {
    return std::isfinite(value) ? fmt::format("{}", value) : "";
}
/// No cell is in quotes: what would end it becomes an underscore.
inline std::string csv_cell(std::string text) {
    std::ranges::replace_if(
        text,
        [](char letter) { return letter <= ' ' || letter > '~' || letter == ',' || letter == '"'; },
        '_');
    return text;
}

template <typename Record>
std::string csv_line(const Record& record) {
    std::string line;
    bool is_first = true;
    auto add = [&](const char*, const auto& value) {
        line += (is_first ? "" : ",") + csv_cell(value);
        is_first = false;
    };
    describe(add, record);
    return line;
}

/// Reads the cells of a line from the left, as describe() names them.
class CsvLine {
public:
    /// Numbers that are not `required` may be absent.
    CsvLine(std::string_view line, std::size_t number, std::string_view file,
            std::initializer_list<std::string_view> required)
        : rest_(line), number_(number), file_(file), required_(required) {}

    void operator()(const char* column, std::integral auto& value) {
        const std::string_view cell = take(column);
        if (!parse(cell, value) || value < 0) fail(column, cell, "a whole number, 0 or more");
    }

    void operator()(const char* column, double& value) {
        const std::string_view cell = take(column);
        const bool may_be_absent = std::ranges::count(required_, std::string_view(column)) == 0;
        if (cell.empty() && may_be_absent) {
            value = PhaseSeconds::kUnknown;
        } else if (!parse(cell, value) || !std::isfinite(value)) {
            fail(column, cell, may_be_absent ? "a number or nothing" : "a number");
        }
    }

    void operator()(const char* column, std::string& value) {
        value = take(column);
        if (value.empty() || value != csv_cell(value)) fail(column, value, "a name without spaces");
    }

    void finish() const {
        require(!has_more_, ExitCode::data, "{}:{}: more cells than columns", file_, number_);
    }

    [[noreturn]] void fail(std::string_view column, std::string_view came,
                           std::string_view legal) const {
        throw Error(ExitCode::data, fmt::format("{}:{}: {} is \"{}\"; it must be {}", file_,
                                                number_, column, printable(came), legal));
    }

private:
    static bool parse(std::string_view cell, auto& value) {
        const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
        return error == std::errc() && end == cell.data() + cell.size();
    }

    std::string_view take(const char* column) {
        require(has_more_, ExitCode::data, "{}:{}: there is no {}", file_, number_, column);
        const std::size_t comma = rest_.find(',');
        const std::string_view cell = rest_.substr(0, comma);
        has_more_ = comma != std::string_view::npos;
        if (has_more_) rest_.remove_prefix(comma + 1);
        return cell;
    }

    std::string_view rest_;
    std::size_t number_;
    std::string_view file_;
    std::vector<std::string_view> required_;
    bool has_more_ = true;
};

/// Calls `line` with each line of `text` after the first, which must be `header`, and its number.
void read_csv(std::string_view text, std::string_view file, const std::string& header, auto line) {
    std::size_t number = 0;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        require(end != std::string_view::npos, ExitCode::data,
                "{}:{}: the line does not end; the file was cut off", file, number + 1);
        const std::string_view one = text.substr(0, end);
        text.remove_prefix(end + 1);
        if (++number > 1) {
            line(one, number);
            continue;
        }
        require(one == header, ExitCode::data, "{}:1: the header is \"{}\"; it must be \"{}\"",
                file, printable(one), header);
    }
    require(number > 0, ExitCode::data, "{}: empty; the header \"{}\" is missing", file, header);
}

}  // namespace hpcai::report
