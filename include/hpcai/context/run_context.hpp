// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/base/clock.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/context/devices.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/meters/counter.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/storage/file_lock.hpp>

namespace hpcai::context {

/// The request of a command line: a new run, or a run to resume.
struct RunRequest {
    config::Sources config;
    std::string output;        // directory; empty: run.output, else results/<name>-<UTC>
    std::string command_line;  // for environment.json
    std::string resume = {};  // directory to resume, if any; then config.files and output are empty

    /// Returns the sources of the configuration: for `resume`, the stored file and the overrides.
    config::Sources sources() const {
        return resume.empty() ? config
                              : config::Sources{{resume + "/config.yaml"}, config.overrides};
    }
};

/// The state that all runs of one invocation share. The first run sets configurations and folder.
struct RepeatedRuns {
    Stopwatch since_program_start;
    std::optional<config::Config> config;     // of this launch, with the changes of `resume --set`
    config::Config stored_config;             // of the first launch
    std::filesystem::path folder;             // result directory, or the parent of several
    int number = 1;                           // of the current run, from 1
    std::shared_ptr<storage::FileLock> lock;  // of the parent of several runs; held by rank 0
};

/// The launch that executes a run, and the number of the run among those of run.repeat.
struct LaunchContext {
    std::string started_utc;
    Stopwatch since_start;         // of the program
    int repetition = 1;            // from 1
    int repetitions = 1;           // run.repeat
    bool exit_ends_others = true;  // whether the launcher ends all ranks when this rank exits

    /// Returns `repetition`, or 0 for a single run.
    int repetition_or_zero() const { return repetitions > 1 ? repetition : 0; }
};

/// The place of this rank, and the facts about a run on which the ranks agree. Nothing here changes
/// after the ranks split into groups.
struct RunContext {
    config::Config config;    // of this launch, with the changes of `resume --set`
    std::string config_text;  // configuration of the first launch, as YAML
    plan::ParallelismController controller;
    plan::RankPlace place;           // of this rank
    std::filesystem::path output;    // result directory
    std::vector<std::string> hosts;  // [node]
    std::vector<RankFacts> ranks;    // [world_rank]
    bool is_resumed = false;         // an earlier launch began the run
    LaunchContext launch;

    const std::string& host(int rank) const { return hosts[controller.place(rank).node]; }
    const std::string& host() const { return hosts[place.node]; }

    /// Returns the directory that `resume` expects: `output`, or the parent of several runs.
    std::filesystem::path folder() const {
        return launch.repetitions > 1 ? output.parent_path() : output;
    }
};

/// The device, data and counters of a rank.
struct Resources {
    std::unique_ptr<device::Device> device;
    device::Precision precision;
    int threads = 1;  // host threads of this rank
    data::SampleSets samples;
    std::vector<meters::Counter> counters;  // of energy and network, read while the group trains
};

}  // namespace hpcai::context
