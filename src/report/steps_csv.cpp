// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cmath>
#include <concepts>
#include <string>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/report/steps_csv.hpp>

namespace hpcai::report {
namespace {

/// Every column once: `columns` is called with each name and the value of `step` there.
void describe(auto& columns, auto& step) {
    columns("step", step.step);
    columns("epoch", step.epoch);
    columns("samples", step.samples);
    columns("end_seconds", step.end_seconds);
    columns("learning_rate", step.learning_rate);
    columns("loss", step.loss);
    columns("input_wait_seconds", step.phases.input_wait);
    columns("forward_seconds", step.phases.forward);
    columns("backward_seconds", step.phases.backward);
    columns("communication_seconds", step.phases.communication);
    columns("optimizer_seconds", step.phases.optimizer);
    columns("other_seconds", step.phases.other);
}

std::string header() {
    std::string line;
    const StepRecord any;
    auto add = [&](const char* name, auto) {
        line += (line.empty() ? "" : ",") + std::string(name);
    };
    describe(add, any);
    return line;
}

/// What has to be legal in any line, cell by cell, from the left.
class LineReader {
public:
    LineReader(std::string_view line, std::size_t number, std::string_view file)
        : rest_(line), number_(number), file_(file) {}

    void operator()(const char* column, std::integral auto& value) {
        const std::string_view cell = take(column);
        if (!parse(cell, value) || value < 0) fail(column, cell, "a whole number, 0 or more");
    }

    void operator()(const char* column, double& value) {
        const std::string_view cell = take(column);
        const std::string_view name = column;
        const bool may_be_absent = name != "end_seconds" && name != "learning_rate";
        if (cell.empty() && may_be_absent) {
            value = PhaseSeconds::kUnknown;
        } else if (!parse(cell, value) || !std::isfinite(value)) {
            fail(column, cell, may_be_absent ? "a number or nothing" : "a number");
        }
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
    bool has_more_ = true;
};

StepRecord read_line(std::string_view line, std::size_t number, std::string_view file,
                     const StepRecord* previous) {
    LineReader reader(line, number, file);
    StepRecord step;
    describe(reader, step);
    reader.finish();
    const std::int64_t expected = previous == nullptr ? 0 : previous->step + 1;
    if (step.step != expected) {
        reader.fail("step", std::to_string(step.step), fmt::format("{}", expected));
    }
    if (previous == nullptr) return step;
    if (step.epoch != previous->epoch && step.epoch != previous->epoch + 1) {
        reader.fail("epoch", std::to_string(step.epoch),
                    fmt::format("{0} or {0} + 1", previous->epoch));
    }
    if (step.end_seconds < previous->end_seconds) {
        reader.fail("end_seconds", fmt::format("{}", step.end_seconds),
                    fmt::format("{} or more", previous->end_seconds));
    }
    return step;
}

}  // namespace

std::string steps_to_csv(std::span<const StepRecord> steps) {
    std::string text = header() + "\n";
    for (const StepRecord& step : steps) {
        std::string line;
        auto add = [&](const char* name, auto value) {
            if (name != std::string_view("step")) line += ',';
            if (std::isfinite(static_cast<double>(value))) line += fmt::format("{}", value);
        };
        describe(add, step);
        text += line + "\n";
    }
    return text;
}

std::vector<StepRecord> steps_from_csv(std::string_view text, std::string_view name) {
    std::vector<StepRecord> steps;
    std::size_t number = 0;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        require(end != std::string_view::npos, ExitCode::data,
                "{}:{}: the line does not end; the file was cut off", name, number + 1);
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end + 1);
        if (++number == 1) {
            require(line == header(), ExitCode::data,
                    "{}:1: the header is \"{}\"; it must be \"{}\"", name, printable(line),
                    header());
            continue;
        }
        steps.push_back(read_line(line, number, name, steps.empty() ? nullptr : &steps.back()));
    }
    require(number > 0, ExitCode::data, "{}: empty; the header \"{}\" is missing", name, header());
    return steps;
}

}  // namespace hpcai::report
