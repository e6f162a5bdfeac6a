// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/repetitions.hpp>

#include "lines.hpp"

namespace hpcai::report {
namespace {

struct RepetitionRow {
    std::string name, seed, verdict;
    const Quantity &seconds, &flops, &vflops, &quality;
};

std::string repetition_line(const RepetitionRow& row) {
    return fmt::format("{:<15}{:>17}  {:<8}{:>10}{:>10}{:>10}{:>8}\n", row.name, row.seed,
                       row.verdict, number(row.seconds, "{:.2f}"), number(row.flops, "{:.3e}"),
                       number(row.vflops, "{:.3e}"), number(row.quality, "{:.4f}"));
}

/// Returns the run with the median VFLOPS; a run without numbers if no run counts.
RepetitionRecord median_run(const RepetitionsRecord& record) {
    const std::size_t index = median_repetition(record);
    const auto& runs = record.repetitions;
    return index < runs.size() && runs[index].counted ? runs[index] : RepetitionRecord{};
}

}  // namespace

std::size_t median_repetition(const RepetitionsRecord& record) {
    std::vector<std::size_t> counted;
    for (std::size_t index = 0; index < record.repetitions.size(); ++index) {
        const RepetitionRecord& run = record.repetitions[index];
        if (run.counted && run.vflops.value) counted.push_back(index);
    }
    if (counted.empty()) return 0;
    std::ranges::stable_sort(
        counted, {}, [&](std::size_t index) { return *record.repetitions[index].vflops.value; });
    return counted[(counted.size() - 1) / 2];
}

std::string repetitions_line(const RepetitionsRecord& record, std::string_view digest) {
    const RepetitionRecord run = median_run(record);
    return fmt::format("REPETITIONS {} of {}  FLOPS={} VFLOPS={} quality={} sha256={}",
                       record.repetitions.size(), record.requested, number(run.flops, "{:.3e}"),
                       number(run.vflops, "{:.3e}"), number(run.quality, "{:.4f}"),
                       printable(digest));
}

nlohmann::ordered_json repetitions_json(const RepetitionsRecord& record, std::string_view digest) {
    using records::number_or_null;
    const RepetitionRecord run = median_run(record);
    return {{"runs", record.repetitions.size()},
            {"requested", record.requested},
            {"FLOPS", number_or_null(run.flops)},
            {"VFLOPS", number_or_null(run.vflops)},
            {"quality", number_or_null(run.quality)},
            {"stopped", record.stopped},
            {"sha256", digest}};
}

std::string repetitions_table(const RepetitionsRecord& record, std::string_view digest) {
    const std::string separator = std::string(kPageWidth, '-') + "\n";
    std::string text = std::string(kPageWidth, '=') + "\n";
    text += fmt::format("repetitions of run {}\n", printable(record.name)) + separator;
    text += fmt::format("{:<15}{:>17}  {:<8}{:>10}{:>10}{:>10}{:>8}\n", "repetition", "seed",
                        "verdict", "seconds", "FLOPS", "VFLOPS", "quality") +
            separator;
    for (const RepetitionRecord& run : record.repetitions) {
        const std::string word(word_of(run.status));
        text += repetition_line({printable(run.directory), std::to_string(run.seed), word,
                                 run.training_seconds, run.flops, run.vflops, run.quality});
    }
    text += separator;
    using Values = RepetitionSpreadRecord;
    const auto add = [&](const char* name, Quantity Values::*value) {
        text += repetition_line({name, "", "", record.training_seconds.*value, record.flops.*value,
                                 record.vflops.*value, record.quality.*value});
    };
    add("median", &Values::median);
    add("minimum", &Values::minimum);
    add("maximum", &Values::maximum);
    add("deviation", &Values::median_absolute_deviation);
    text += separator + "deviation: median absolute deviation from the median\n" +
            "last line: numbers of the run with the median VFLOPS\n";
    if (!record.stopped.empty()) text += fmt::format("reason: {}\n", printable(record.stopped));
    return text + repetitions_line(record, digest) + "\n";
}

}  // namespace hpcai::report
