// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/config/interconnect.hpp>

#include "storage/temporary_folder.hpp"

namespace hpcai::config {
namespace {

constexpr const char* kMachine =
    "within_node: {latency_us: 5, gb_per_second: 20}\n"
    "between_nodes: {latency_us: 2.5, gb_per_second: 12.5}\n";

TEST(Interconnect, HasSecondsAndBytes) {
    const Interconnect machine = read_interconnect(kMachine, "m.yaml");
    EXPECT_DOUBLE_EQ(machine.within_node.latency_seconds, 5e-6);
    EXPECT_DOUBLE_EQ(machine.within_node.bytes_per_second, 2e10);
    EXPECT_DOUBLE_EQ(machine.between_nodes.latency_seconds, 2.5e-6);
    EXPECT_DOUBLE_EQ(machine.between_nodes.bytes_per_second, 1.25e10);
    EXPECT_FALSE(machine.overlapped_share);
    const std::string more = std::string(kMachine) + "overlap: {overlapped_share: 0.75}\n";
    EXPECT_EQ(read_interconnect(more, "m.yaml").overlapped_share, 0.75);
}

std::string refusal(const std::string& yaml) {
    return storage::error_of(ExitCode::usage, [&] { read_interconnect(yaml, "m.yaml"); });
}

TEST(Interconnect, SaysWhereSomethingIsWrong) {
    EXPECT_NE(refusal("within_node: {latency_us: 5, gb_per_second: 20}\n")
                  .find("between_nodes.latency_us: expected a number, got nothing"),
              std::string::npos);
    EXPECT_NE(refusal("within_node: {latency_us: fast}\n")
                  .find("m.yaml:1:27: within_node.latency_us: expected a number from 0"),
              std::string::npos)
        << refusal("within_node: {latency_us: fast}\n");
    EXPECT_NE(refusal("within_node: {gb_per_second: 0}\n").find("got '0'"), std::string::npos);
    EXPECT_NE(refusal("within_node: {gbps: 1}\n").find("got 'within_node.gbps'"),
              std::string::npos);
    EXPECT_NE(refusal(std::string(kMachine) + "overlap: {overlapped_share: 1.5}\n").find("0 to 1"),
              std::string::npos);
    refusal("");
    refusal("- 1\n");
}

}  // namespace
}  // namespace hpcai::config
