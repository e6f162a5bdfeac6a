// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <concepts>
#include <map>
#include <regex>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/report/csv.hpp>

namespace hpcai::report {
namespace {

template <typename T, typename Record>
concept MaybeConst =
    std::same_as<std::remove_const_t<T>, Record>;  // const to write, mutable to read

/// describe() calls `columns` with the name of each column and the record's value.
void describe(auto& columns, MaybeConst<PhaseSeconds> auto& phases) {
    columns("input_wait_seconds", phases.input_wait);
    columns("forward_seconds", phases.forward);
    columns("backward_seconds", phases.backward);
    columns("communication_seconds", phases.communication);
    columns("optimizer_seconds", phases.optimizer);
    columns("other_seconds", phases.other);
}

void describe(auto& columns, MaybeConst<StepRecord> auto& step) {
    columns("step", step.step);
    columns("epoch", step.epoch);
    columns("samples", step.samples);
    columns("end_seconds", step.end_seconds);
    columns("learning_rate", step.learning_rate);
    columns("loss", step.loss);
    describe(columns, step.phases);
}

void describe(auto& columns, MaybeConst<RankRecord> auto& rank) {
    columns("group_rank", rank.group_rank);
    columns("world_rank", rank.world_rank);
    columns("host", rank.host);
    columns("steps", rank.steps);
    columns("median_step_seconds", rank.median_step_seconds);
    columns("p99_step_seconds", rank.p99_step_seconds);
    columns("longest_step_seconds", rank.longest_step_seconds);
    describe(columns, rank.mean);
    columns("overlapped_communication_seconds", rank.overlapped_communication);
    columns("peak_memory_bytes", rank.peak_memory_bytes);
}

bool is_required(std::string_view column) {
    return column == "end_seconds" || column == "learning_rate";
}

std::string csv_cell(std::integral auto value) {
    return fmt::format("{}", value);
}
std::string csv_cell(double value) {
    return std::isfinite(value) ? fmt::format("{}", value) : "";
}
/// Cells are not quoted; csv_name() lists the characters that become underscores.
std::string csv_cell(std::string text) {
    std::ranges::replace_if(
        text,
        [](char letter) { return letter <= ' ' || letter > '~' || letter == ',' || letter == '"'; },
        '_');
    return text;
}

/// Reads the cells of a line from the left, as describe() names them.
class CsvLine {
public:
    CsvLine(std::string_view line, std::size_t number, std::string_view file)
        : rest_(line), number_(number), file_(file) {}

    void operator()(const char* column, std::integral auto& value) {
        const std::string_view cell = take(column);
        const auto number = parse_number<std::remove_cvref_t<decltype(value)>>(cell);
        if (!number || *number < 0) fail(column, cell, "a whole number, 0 or more");
        value = *number;
    }

    void operator()(const char* column, double& value) {
        const std::string_view cell = take(column);
        const bool may_be_absent = !is_required(column);
        const auto number =
            cell.empty() && may_be_absent ? PhaseSeconds::kUnknown : parse_number<double>(cell);
        if (!number || (!cell.empty() && !std::isfinite(*number))) {
            fail(column, cell, may_be_absent ? "a number or nothing" : "a number");
        }
        value = *number;
    }

    void operator()(const char* column, std::string& value) {
        value = take(column);
        if (value.empty() || value != csv_cell(value)) fail(column, value, "a name without spaces");
    }

    void finish() const {
        require(!has_more_, ExitCode::data, "{}:{}: more cells than columns", file_, number_);
    }

    [[noreturn]] void fail(std::string_view column, std::string_view found,
                           std::string_view legal) const {
        throw Error(ExitCode::data, fmt::format("{}:{}: {} is \"{}\"; it must be {}", file_,
                                                number_, column, printable(found), legal));
    }

private:
    std::string_view take(const char* column) {
        require(has_more_, ExitCode::data, "{}:{}: {} is missing", file_, number_, column);
        const std::size_t comma = rest_.find(',');
        const std::string_view cell = rest_.substr(0, comma);
        has_more_ = comma != std::string_view::npos;
        if (has_more_) rest_.remove_prefix(comma + 1);
        return cell;
    }

    std::string_view rest_;
    std::size_t number_;
    std::string_view file_;
    bool has_more_ = true;
};

/// Checks a record against the previous record, which is null for the first.
void check(const CsvLine& line, const StepRecord& step, const StepRecord* previous) {
    const std::int64_t expected = previous == nullptr ? 0 : previous->step + 1;
    if (step.step != expected) line.fail("step", csv_cell(step.step), csv_cell(expected));
    if (previous == nullptr) return;
    if (step.epoch != previous->epoch && step.epoch != previous->epoch + 1) {
        line.fail("epoch", csv_cell(step.epoch), fmt::format("{0} or {0} + 1", previous->epoch));
    }
    if (step.end_seconds < previous->end_seconds) {
        line.fail("end_seconds", csv_cell(step.end_seconds),
                  fmt::format("{} or more", previous->end_seconds));
    }
}

void check(const CsvLine& line, const RankRecord& rank, const RankRecord* previous) {
    const int expected = previous == nullptr ? 0 : previous->group_rank + 1;
    if (rank.group_rank != expected) {
        line.fail("group_rank", csv_cell(rank.group_rank), csv_cell(expected));
    }
    const auto check_column = [&](const char* column, const auto& value) {
        if constexpr (std::is_same_v<decltype(value), const double&>) {
            if (value < 0) line.fail(column, csv_cell(value), "0 or more");
        }
    };
    describe(check_column, rank);
}

template <typename Record>
std::string header() {
    std::vector<std::string_view> names;
    const auto add = [&](const char* name, const auto&) { names.emplace_back(name); };
    const Record defaults;
    describe(add, defaults);
    return fmt::format("{}", fmt::join(names, ","));
}

template <typename Record>
std::string to_csv(std::span<const Record> records) {
    std::string text = header<Record>() + "\n";
    for (const Record& record : records) {
        std::vector<std::string> cells;
        const auto add = [&](const char*, const auto& value) { cells.push_back(csv_cell(value)); };
        describe(add, record);
        text += fmt::format("{}\n", fmt::join(cells, ","));
    }
    return text;
}

template <typename Record>
Record read_line(CsvLine line, const Record* previous) {
    Record record;
    describe(line, record);
    line.finish();
    check(line, record, previous);
    return record;
}

template <typename Record>
std::vector<Record> from_csv(std::string_view text, std::string_view file) {
    const std::string names = header<Record>();
    require(!text.empty(), ExitCode::data, "{}: empty; the header \"{}\" is missing", file, names);
    std::vector<Record> records;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        require(end != std::string_view::npos, ExitCode::data,
                "{}:{}: the line has no newline; the file is truncated", file, number);
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end + 1);
        if (number == 1) {
            require(line == names, ExitCode::data, "{}:1: the header is \"{}\"; it must be \"{}\"",
                    file, printable(line), names);
        } else {
            const Record* previous = records.empty() ? nullptr : &records.back();
            records.push_back(read_line(CsvLine(line, number, file), previous));
        }
    }
    return records;
}

using nlohmann::ordered_json;
using CsvRow = std::map<std::string, std::string>;  // column -> cell

std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == text.npos) return text;
    return '"' + std::regex_replace(text, std::regex("\""), "\"\"") + '"';
}

std::string table_text(const ordered_json& value) {
    if (value.is_null()) return "";
    if (value.is_number_float()) return csv_cell(value.get<double>());
    if (value.is_array()) {
        std::vector<std::string> texts;
        for (const ordered_json& element : value) texts.push_back(table_text(element));
        return fmt::format("{}", fmt::join(texts, ";"));
    }
    if (!value.is_string()) return value.dump();
    const std::string text = value;
    return text.find_first_of("=+-@\t\r") == 0 ? "'" + text : text;
}

/// Adds the values in `value`, whose path is `path`, to `row` and their new columns to `columns`.
void flatten(const ordered_json& value, const std::string& path, CsvRow& row,
             std::vector<std::string>& columns) {
    if (value.is_array() && (value.empty() || value.front().is_structured())) return;
    if (!value.is_object()) {
        const std::string column = quoted(path);
        row[column] = quoted(table_text(value));
        if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
        return;
    }
    for (const auto& [key, member] : value.items()) {
        const std::size_t reason = key.rfind("_reason");
        if (reason != key.npos && value.contains(key.substr(0, reason))) continue;
        flatten(member, path.empty() ? key : path + "." + key, row, columns);
    }
}

}  // namespace

std::string csv_of_json(std::string_view json) {
    std::vector<std::string> columns;
    std::vector<CsvRow> rows;
    for (const ordered_json& record : ordered_json::parse(json))
        flatten(record, "", rows.emplace_back(), columns);
    std::string text = fmt::format("{}\r\n", fmt::join(columns, ","));
    for (CsvRow& row : rows) {
        std::vector<std::string> cells;
        for (const std::string& column : columns) cells.push_back(row[column]);
        text += fmt::format("{}\r\n", fmt::join(cells, ","));
    }
    return text;
}

std::string steps_to_csv(std::span<const StepRecord> steps) {
    return to_csv(steps);
}

std::vector<StepRecord> steps_from_csv(std::string_view text, std::string_view name) {
    return from_csv<StepRecord>(text, name);
}

std::string ranks_to_csv(std::span<const RankRecord> ranks) {
    return to_csv(ranks);
}

std::vector<RankRecord> ranks_from_csv(std::string_view text, std::string_view name) {
    return from_csv<RankRecord>(text, name);
}

std::string csv_name(const std::string& name) {
    return csv_cell(name);
}

}  // namespace hpcai::report
