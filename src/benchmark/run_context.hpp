// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/roofline_record.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/meters/counter.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/storage/file_lock.hpp>

#include "devices.hpp"

namespace hpcai::benchmark {

/// What the runs of one invocation share. The first run determines it.
struct Series {
    Stopwatch since_program_start;
    std::optional<config::Config> config;
    std::filesystem::path folder;  // result directory; with run.repeat, the parent of all
    int number = 1;                // number of the run that starts, from 1
};

/// Everything that all ranks know before they split into groups.
struct Start {
    config::Config config;
    plan::ParallelismController controller;
    plan::RankPlace place;
    std::filesystem::path output;        // result directory, new or empty unless the run is resumed
    std::vector<std::string> hostnames;  // by world rank
    std::vector<RankFacts> ranks;        // by world rank
    data::SampleSets samples;
    std::unique_ptr<device::Device> device;
    device::Precision precision;
    std::string started_utc;  // when the first program of the run began
    int threads = 1;          // host threads of this rank
    std::string device_note;  // why device.kind auto uses no GPU, if that is unexpected
    CeilingRecord ceiling;    // peak rates of a rank, from run.roofline
    int repetition = 1;       // number among `repetitions`, from 1
    int repetitions = 1;      // run.repeat
    std::vector<meters::Counter> counters =
        {};                                // those that this rank reads while its group trains
    bool resumes = false;                  // an earlier program began the run
    std::string program_started_utc = {};  // when this program began
    Stopwatch since_program_start = {};
    std::string program_sha256 = {};                      // digest of this program's file
    DeterminismRecord determinism = {};                   // guarantees of the devices
    std::map<std::string, std::string> environment = {};  // allow-listed facts
    std::shared_ptr<storage::FileLock> lock = nullptr;    // lock of `output`, held by the leaders
    bool exit_ends_others = true;  // whether the exit of this process ends ranks that still work
};

}  // namespace hpcai::benchmark
