// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/csv.hpp>
#include <hpcai/report/record_text.hpp>
#include <hpcai/report/table.hpp>

namespace hpcai::report {
namespace {

using nlohmann::ordered_json;

constexpr auto kReplaceInvalidUtf8 = ordered_json::error_handler_t::replace;

/// For a text without control characters, JSON has the same escapes as OpenMetrics.
std::string label_value(std::string_view text) {
    return ordered_json(printable(text)).dump();
}

std::string labels_of(const TableRow& row) {
    const RunRecord& record = row.record;
    const std::vector<PlaceRecord>& ranks = record.topology.map;
    return fmt::format(
        "workload={},system={},host={},run={},directory={},verdict={}",
        label_value(problem_name(record.workload)), label_value(record.submission.system_name),
        label_value(ranks.empty() ? "" : ranks.front().host), label_value(record.name),
        label_value(row.directory), label_value(word_of(record.verdict.status)));
}

}  // namespace

std::string csv_table(const std::vector<TableRow>& rows) {
    auto json = ordered_json::array();
    for (const TableRow& row : rows) {
        json.push_back({{"directory", row.directory}});
        json.back().update(ordered_json::parse(records::to_json(row.record)));
    }
    return csv_of_json(json.dump(-1, ' ', false, kReplaceInvalidUtf8));
}

std::string openmetrics_table(const std::vector<TableRow>& rows) {
    std::string text;
    const auto add_gauge = [&](const char* name, const char* help, auto value_of) {
        text += fmt::format("# TYPE hpcai500_{0} gauge\n# HELP hpcai500_{0} {1}\n", name, help);
        for (const TableRow& row : rows) {
            if (const Quantity number = value_of(row.record); number.value)
                text += fmt::format("hpcai500_{}{{{}}} {}\n", name, labels_of(row), *number.value);
        }
    };
    using Run = RunRecord;
    add_gauge("flops", "FLOPs of the training per second.",
              [](const Run& run) { return run.scores.flops; });
    add_gauge("vflops", "FLOPS times the penalty coefficient of the quality.",
              [](const Run& run) { return run.scores.vflops; });
    add_gauge("quality_ratio", "Quality of the ensemble on the test samples.",
              [](const Run& run) { return run.quality.ensemble; });
    add_gauge("training_seconds", "Training time of the slowest group.",
              [](const Run& run) { return run.time.training_seconds; });
    return text + "# EOF\n";
}

}  // namespace hpcai::report
