// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/storage/npy.hpp>

#include "cli/child_process.hpp"

/// Launches of the program under mpirun, and their files.
namespace hpcai::end_to_end {

namespace fs = std::filesystem;
using cli::Outcome;
using cli::text_of;

/// A full ResNet-50 on images of 32 x 32 pixels, with three steps of 8 samples per group.
inline constexpr const char* kResNet50Config = R"(run: {name: tiny, seed: 3, roofline: off}
workload: {classes: 4, image_size: 32, target_quality: 0.25, epochs: 1}
bagging: {M: 2, P_degree: 1, sampler: none}
data: {kind: image_folder, path: set/train, validation_path: set/val}
training: {batch_size: 8, learning_rate: 0.1, schedule: constant, warmup_epochs: 0, precision: fp32}
device: {kind: cpu, threads: 1}
)";

/// The same layers with an eighth of the channels, for tests that do not depend on arithmetic. Its
/// gradients have the same number of buckets.
inline constexpr const char* kConfig = R"(run: {name: tiny, seed: 3, roofline: off}
workload: {classes: 4, image_size: 32, backbone_width: 8, target_quality: 0.25, epochs: 1}
bagging: {M: 2, P_degree: 1, sampler: none}
data: {kind: image_folder, path: set/train, validation_path: set/val}
training: {batch_size: 8, learning_rate: 0.1, schedule: constant, warmup_epochs: 0, precision: fp32}
device: {kind: cpu, threads: 1}
communication: {bucket_mib: 0.4}
)";

/// Makes 4 classes with 6 training and 3 test images each in `folder`/set. Copies the set that the
/// first call in this process generated.
inline void make_pictures(const fs::path& folder) {
    static const storage::TemporaryFolder made;
    static const Outcome outcome = cli::run_in(
        made.path(), {"data", "generate", "photographs", "--output", "set", "--classes", "4",
                      "--training-per-class", "6", "--validation-per-class", "3", "--size", "48"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    fs::copy(made / "set", folder / "set", fs::copy_options::recursive);
}

inline void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

/// `hpcai500 run --config tiny.yaml --output result` by `ranks` ranks in `folder`, with `changes`
/// (section.key=value) and further `options` of mpirun.
struct Launch {
    fs::path folder;
    int ranks = 1;
    std::vector<std::string> changes = {};
    std::vector<std::string> options = {};
    std::string output = "result";
    std::string config = "tiny.yaml";
    std::string program = cli::environment("HPCAI500_BINARY");
};

inline Outcome run(const Launch& launch) {
    std::vector<std::string> words{cli::environment("HPCAI500_MPIRUN"), "--bind-to", "none", "-np",
                                   std::to_string(launch.ranks)};
    words.insert(words.end(), launch.options.begin(), launch.options.end());
    words.insert(words.end(),
                 {launch.program, "run", "--config", launch.config, "--output", launch.output});
    for (const std::string& change : launch.changes) words.insert(words.end(), {"--set", change});
    return cli::execute_in(launch.folder, words);
}

inline Outcome run_ranks(const fs::path& folder, int ranks, const std::vector<std::string>& changes,
                         const std::string& output = "result",
                         const std::string& config = "tiny.yaml") {
    return run({folder, ranks, changes, {}, output, config});
}

/// Returns the command that the program prints to resume the result of `run` without options.
inline std::string resume_command(int ranks, const std::string& output = "result") {
    return "mpirun --bind-to none -np " + std::to_string(ranks) + " hpcai500 resume " + output;
}

/// Returns the standard error of the program, without that of mpirun.
inline std::vector<std::string> messages(const Outcome& outcome) {
    std::vector<std::string> lines;
    std::istringstream in(outcome.error);
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("hpcai500: ")) lines.push_back(line);
    }
    return lines;
}

inline std::string last_line(const std::string& text) {
    const std::size_t end = text.find_last_not_of('\n');
    const std::size_t begin = text.rfind('\n', end);
    return end == std::string::npos ? "" : text.substr(begin + 1, end - begin);
}

inline nlohmann::json json_of(const fs::path& path) {
    return nlohmann::json::parse(text_of(path));
}

/// Returns the fraction of the rows of `probabilities` (samples, classes) whose highest entry is
/// their label.
inline double top_1(const storage::NpyArray& probabilities, const storage::NpyArray& labels) {
    const auto rows = probabilities.as<float>();
    const auto classes = static_cast<std::size_t>(probabilities.shape()[1]);
    double correct = 0;
    for (std::size_t sample = 0; sample < labels.as<std::int32_t>().size(); ++sample) {
        const auto row = rows.subspan(sample * classes, classes);
        correct += std::max_element(row.begin(), row.end()) - row.begin() ==
                   labels.as<std::int32_t>()[sample];
    }
    return correct / static_cast<double>(labels.shape()[0]);
}

}  // namespace hpcai::end_to_end
