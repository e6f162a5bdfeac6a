// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/report/table.hpp>

#include "example_record.hpp"
#include "golden.hpp"

namespace hpcai::report {
namespace {

TableRow hostile_row() {
    TableRow row{"r \"x\"\\\n}\xff", example_record()};
    row.record.name = "# EOF\n{run=\"x\"} 1";
    row.record.submission.system_name = "Abacus \"2\"";
    row.record.scores.vflops = {std::nullopt, "no target"};
    row.record.topology.map.clear();
    return row;
}

TEST(OpenMetricsTable, HasAGaugeForEachMainNumberWithALineForEachRun) {
    expect_golden("table.prom",
                  openmetrics_table({{"results/a", example_record()}, hostile_row()}));
}

TEST(OpenMetricsTable, EndsAsTheFormatRequiresEvenWithoutRuns) {
    EXPECT_TRUE(openmetrics_table({}).ends_with("\n# EOF\n"));
}

TEST(CsvTable, BeginsWithTheDirectory) {
    const std::string csv = csv_table({{"results/a", example_record()}, hostile_row()});
    EXPECT_TRUE(csv.starts_with("directory,schema,")) << csv;
    EXPECT_NE(csv.find("\r\nresults/a,"), std::string::npos) << csv;
    EXPECT_NE(csv.find("\r\n\"r \"\"x\"\"\\\n}\xEF\xBF\xBD\","), std::string::npos) << csv;
}

}  // namespace
}  // namespace hpcai::report
