// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <hpcai/report/steps_csv.hpp>

#include "csv_line.hpp"

namespace hpcai::report {

void describe(auto& columns, Any<StepRecord> auto& step) {
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

namespace {

std::string header() {
    return csv_header(StepRecord());
}

StepRecord read_line(std::string_view line, std::size_t number, std::string_view file,
                     const StepRecord* previous) {
    CsvLine reader(line, number, file, {"end_seconds", "learning_rate"});
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
    for (const StepRecord& step : steps) text += csv_line(step) + "\n";
    return text;
}

std::vector<StepRecord> steps_from_csv(std::string_view text, std::string_view name) {
    std::vector<StepRecord> steps;
    read_csv(text, name, header(), [&](std::string_view line, std::size_t number) {
        steps.push_back(read_line(line, number, name, steps.empty() ? nullptr : &steps.back()));
    });
    return steps;
}

}  // namespace hpcai::report
