// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
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

struct Gauge {
    const char* name;
    const char* unit;  // a suffix of the name; empty: none
    const char* help;
    Quantity (*value)(const RunRecord& record);
};

constexpr Gauge kGauges[] = {
    {"flops", "", "FLOPs of the training per second.",
     [](const RunRecord& record) { return record.scores.flops; }},
    {"vflops", "", "FLOPS times the penalty coefficient of the quality.",
     [](const RunRecord& record) { return record.scores.vflops; }},
    {"quality_ratio", "ratio", "Quality of the ensemble on the test samples.",
     [](const RunRecord& record) { return record.quality.ensemble; }},
    {"training_seconds", "seconds", "Training time of the slowest group.",
     [](const RunRecord& record) { return record.time.training_seconds; }},
};

/// Returns `name="text"`. Without control characters, JSON has the escapes of OpenMetrics only.
std::string label(const char* name, std::string_view text) {
    return fmt::format("{}={}", name,
                       ordered_json(printable(text)).dump(-1, ' ', false, kReplaceInvalidUtf8));
}

std::string labels_of(const TableRow& row) {
    const RunRecord& record = row.record;
    const std::vector<PlaceRecord>& ranks = record.topology.map;
    return label("workload", problem_name(record.workload)) + "," +
           label("system", record.submission.system_name) + "," +
           label("host", ranks.empty() ? "" : ranks.front().host) + "," +
           label("run", record.name) + "," + label("directory", row.directory) + "," +
           label("verdict", word_of(record.verdict.status));
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
    for (const Gauge& gauge : kGauges) {
        const std::string name = fmt::format("hpcai500_{}", gauge.name);
        text += fmt::format("# TYPE {0} gauge\n# HELP {0} {1}\n", name, gauge.help);
        if (*gauge.unit != '\0') text += fmt::format("# UNIT {} {}\n", name, gauge.unit);
        for (const TableRow& row : rows) {
            const Quantity quantity = gauge.value(row.record);
            if (quantity.value)
                text += fmt::format("{}{{{}}} {}\n", name, labels_of(row), *quantity.value);
        }
    }
    return text + "# EOF\n";
}

}  // namespace hpcai::report
