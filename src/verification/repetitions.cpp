// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include <hpcai/base/median.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/repetitions.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/repetitions.hpp>

namespace hpcai::verification {
namespace {

RepetitionSpreadRecord spread_of(const RepetitionsRecord& record, Quantity RepetitionRecord::*of) {
    const std::vector<double> values = counted_values(record, of);
    if (values.empty()) {
        const Quantity none = nothing("no run whose groups all finished has it");
        return {none, none, none, none};
    }
    const double middle = median(values);
    std::vector<double> deviations;
    for (const double value : values) deviations.push_back(std::abs(value - middle));
    return {{middle, ""},
            {std::ranges::min(values), ""},
            {std::ranges::max(values), ""},
            {median(std::move(deviations)), ""}};
}

/// From good to bad; what is not named is worse than all.
int badness(ExitCode code) {
    constexpr std::array kOrder{ExitCode::ok, ExitCode::partial, ExitCode::invalid, ExitCode::data,
                                ExitCode::all_groups_failed};
    return static_cast<int>(std::ranges::find(kOrder, code) - kOrder.begin());
}

}  // namespace

std::vector<double> counted_values(const RepetitionsRecord& record,
                                   Quantity RepetitionRecord::*number) {
    std::vector<double> values;
    for (const RepetitionRecord& one : record.repetitions) {
        if (one.counted && (one.*number).value) values.push_back(*(one.*number).value);
    }
    return values;
}

std::string repetition_name(int number) {
    return fmt::format("repetition_{}", number);
}

bool has_repetitions(const std::filesystem::path& directory) {
    std::error_code error;
    return std::filesystem::exists(directory / kRepetitionsName, error);
}

RepetitionRecord describe_repetition(int number, const RunRecord& record,
                                     const std::string& manifest) {
    const bool all_finished = std::ranges::all_of(
        record.work.groups, [](const GroupRecord& group) { return group.failure.empty(); });
    return {.directory = repetition_name(number),
            .seed = record.workload.seed,
            .status = record.verdict.status,
            .exit_code = record.verdict.exit_code,
            .counted = all_finished,
            .flops = record.scores.flops,
            .vflops = record.scores.vflops,
            .quality = record.quality.ensemble,
            .training_seconds = record.time.training_seconds,
            .manifest = manifest};
}

void derive_repetitions(RepetitionsRecord& record) {
    record.exit_code = ExitCode::ok;
    for (const RepetitionRecord& one : record.repetitions) {
        if (badness(one.exit_code) > badness(record.exit_code)) record.exit_code = one.exit_code;
    }
    record.flops = spread_of(record, &RepetitionRecord::flops);
    record.vflops = spread_of(record, &RepetitionRecord::vflops);
    record.quality = spread_of(record, &RepetitionRecord::quality);
    record.training_seconds = spread_of(record, &RepetitionRecord::training_seconds);
}

std::size_t median_repetition(const RepetitionsRecord& record) {
    std::vector<std::size_t> counted;
    for (std::size_t index = 0; index < record.repetitions.size(); ++index) {
        const RepetitionRecord& one = record.repetitions[index];
        if (one.counted && one.vflops.value) counted.push_back(index);
    }
    if (counted.empty()) return 0;
    std::ranges::stable_sort(
        counted, {}, [&](std::size_t index) { return *record.repetitions[index].vflops.value; });
    return counted[(counted.size() - 1) / 2];
}

RepetitionsRecord read_repetitions(const std::filesystem::path& directory) {
    const auto path = directory / kRepetitionsName;
    RepetitionsRecord record = records::read_file<RepetitionsRecord>(path);
    require(!record.repetitions.empty(), ExitCode::data, "'{}': has no run", path.string());
    for (std::size_t index = 0; index < record.repetitions.size(); ++index) {
        const std::string& name = record.repetitions[index].directory;
        const std::string wanted = repetition_name(static_cast<int>(index) + 1);
        require(name == wanted, ExitCode::data,
                "'{}': repetitions[{}].directory: expected \"{}\", got \"{}\"", path.string(),
                index, wanted, name.substr(0, 60));
    }
    return record;
}

}  // namespace hpcai::verification
