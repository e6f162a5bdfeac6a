// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <hpcai/config/machine.hpp>
#include <hpcai/config/reader.hpp>

#include "storage/temporary_folder.hpp"

namespace hpcai::config {
namespace {

constexpr const char* kMachine =
    "within_node: {latency_us: 5, gb_per_second: 20}\n"
    "between_nodes: {latency_us: 2.5, gb_per_second: 12.5}\n";

TEST(Machine, HasSecondsAndBytes) {
    const Machine machine = read_machine(kMachine, "m.yaml");
    EXPECT_DOUBLE_EQ(machine.within_node->latency_seconds, 5e-6);
    EXPECT_DOUBLE_EQ(machine.within_node->bytes_per_second, 2e10);
    EXPECT_DOUBLE_EQ(machine.between_nodes->latency_seconds, 2.5e-6);
    EXPECT_DOUBLE_EQ(machine.between_nodes->bytes_per_second, 1.25e10);
    EXPECT_FALSE(machine.overlapped_share);
    EXPECT_FALSE(machine.device_value("memory_gb"));
    const std::string more = fmt::format("{}overlap: {{overlapped_share: 0.75}}\n", kMachine);
    EXPECT_EQ(read_machine(more, "m.yaml").overlapped_share, 0.75);
}

TEST(Machine, HasTheFiguresOfItsDevice) {
    const Machine machine = read_machine(
        "device: {name: A GPU, source: a page, memory_gb: 80, mixed_tflops: 312}\n", "m.yaml");
    EXPECT_EQ(machine.name, "A GPU");
    EXPECT_EQ(machine.device_value("memory_gb"), 80e9);
    EXPECT_EQ(machine.device_value("mixed_tflops"), 312e12);
    EXPECT_FALSE(machine.within_node);
    EXPECT_EQ(machine.figures,
              std::vector<std::string>{
                  "device: name A GPU, source a page, memory_gb 80, mixed_tflops 312"});
}

std::string refusal(const std::string& yaml) {
    return storage::error_of(ExitCode::usage, [&] { read_machine(yaml, "m.yaml"); });
}

TEST(Machine, ReportsWhereSomethingIsWrong) {
    EXPECT_NE(refusal("between_nodes: {latency_us: 5}\n")
                  .find("m.yaml:1:1: between_nodes.gb_per_second: expected a number"),
              std::string::npos);
    EXPECT_NE(refusal("within_node: {latency_us: fast}\n")
                  .find("m.yaml:1:27: within_node.latency_us: expected a number from 0"),
              std::string::npos)
        << refusal("within_node: {latency_us: fast}\n");
    EXPECT_NE(refusal("within_node: {gb_per_second: 0}\n").find("got '0'"), std::string::npos);
    EXPECT_NE(refusal("within_node: {latency: 1}\n").find("mean 'within_node.latency_us'?"),
              std::string::npos);
    EXPECT_NE(refusal("within_node: {gbps: 1}\n").find("got 'within_node.gbps'"),
              std::string::npos);
    EXPECT_NE(
        refusal(fmt::format("{}overlap: {{overlapped_share: 1.5}}\n", kMachine)).find("0 to 1"),
        std::string::npos);
    EXPECT_NE(refusal("device: {gpus_per_node: 1e9}\n").find("from 1 to 1024"), std::string::npos);
    EXPECT_NE(refusal("device: {memory_gb: nan}\n").find("got 'nan'"), std::string::npos);
    EXPECT_NE(refusal("device: {name: [a]}\n").find("device.name: expected a string"),
              std::string::npos);
    EXPECT_NE(refusal("link: {gb_per_second: 1}\n").find("got 'link'"), std::string::npos);
    refusal("device: {gpus_per_node: 1.5}\n");
    refusal("");
    refusal("- 1\n");
}

TEST(ShippedMachines, AreTheFilesInTheInstallationOfTheProgram) {
    namespace fs = std::filesystem;
    const storage::TemporaryFolder folder;
    const fs::path machines = folder / "share/hpcai500/configs/machines";
    fs::create_directories(machines / "folder.yaml");
    for (const char* name : {"a.yaml", "b.yaml~", "README.md"}) std::ofstream(machines / name);
    fs::create_directory(folder / "bin");
    fs::create_directory(folder / "configs");
    std::ofstream(folder / "configs/machines") << "not a folder";
    fs::create_symlink(folder / "bin/hpcai500", folder / "exe");
    using Files = std::map<std::string, fs::path>;
    EXPECT_EQ(shipped_machines(folder / "exe"), (Files{{"a", machines / "a.yaml"}}));
}

TEST(Machine, OfEachProfileNamesItsSource) {
    namespace fs = std::filesystem;
    const fs::path folder = fs::path(std::getenv("HPCAI500_SOURCE_DIR")) / "configs/machines";
    int profiles = 0;
    for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
        const Machine machine = read_machine(read_file(file.path().string()), file.path().string());
        EXPECT_FALSE(machine.name.empty()) << file;
        EXPECT_NE(machine.figures.at(0).find(", source "), std::string::npos) << file;
        EXPECT_TRUE(machine.device_value("memory_gb")) << file;
        ++profiles;
    }
    EXPECT_GE(profiles, 4);
}

}  // namespace
}  // namespace hpcai::config
