// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <hpcai/report/ranks_csv.hpp>

#include "csv_line.hpp"

namespace hpcai::report {

void describe(auto& columns, Any<RankRecord> auto& rank) {
    columns("group_rank", rank.group_rank);
    columns("world_rank", rank.world_rank);
    columns("host", rank.host);
    columns("steps", rank.steps);
    columns("median_step_seconds", rank.median_step_seconds);
    columns("p99_step_seconds", rank.p99_step_seconds);
    columns("longest_step_seconds", rank.longest_step_seconds);
    columns("input_wait_seconds", rank.mean.input_wait);
    columns("forward_seconds", rank.mean.forward);
    columns("backward_seconds", rank.mean.backward);
    columns("communication_seconds", rank.mean.communication);
    columns("optimizer_seconds", rank.mean.optimizer);
    columns("other_seconds", rank.mean.other);
    columns("hidden_communication_seconds", rank.hidden_communication);
    columns("peak_memory_bytes", rank.peak_memory_bytes);
}

namespace {

RankRecord read_line(std::string_view line, std::size_t number, std::string_view file,
                     std::size_t expected) {
    CsvLine reader(line, number, file, {});
    RankRecord rank;
    describe(reader, rank);
    reader.finish();
    if (rank.group_rank != static_cast<int>(expected)) {
        reader.fail("group_rank", std::to_string(rank.group_rank), std::to_string(expected));
    }
    auto check = [&](const char* column, const auto& value) {
        if constexpr (std::is_same_v<decltype(value), const double&>) {
            if (value < 0) reader.fail(column, fmt::format("{}", value), "0 or more");
        }
    };
    describe(check, std::as_const(rank));
    return rank;
}

}  // namespace

std::string table_name(const std::string& name) {
    return csv_cell(name);
}

std::string ranks_to_csv(std::span<const RankRecord> ranks) {
    std::string text = csv_header(RankRecord()) + "\n";
    for (const RankRecord& rank : ranks) text += csv_line(rank) + "\n";
    return text;
}

std::vector<RankRecord> ranks_from_csv(std::string_view text, std::string_view name) {
    std::vector<RankRecord> ranks;
    read_csv(text, name, csv_header(RankRecord()), [&](std::string_view line, std::size_t number) {
        ranks.push_back(read_line(line, number, name, ranks.size()));
    });
    return ranks;
}

}  // namespace hpcai::report
