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

/// The runs of one invocation: what they share, as the first has agreed on it.
struct Series {
    Stopwatch since_program_start;
    std::optional<config::Config> config;
    std::filesystem::path folder;  // of the only run's result, or of those of all
    int number = 1;                // of the run that starts, from 1
};

/// Everything all ranks know before they part into groups.
struct Start {
    config::Config config;
    plan::ParallelismController controller;
    plan::RankPlace place;
    std::filesystem::path output;        // the result directory; new or empty, unless it resumes
    std::vector<std::string> hostnames;  // by world rank
    std::vector<RankFacts> ranks;        // by world rank
    data::SampleSets samples;
    std::unique_ptr<device::Device> device;
    device::Precision precision;
    std::string started_utc;  // of the program that began the run
    int threads = 1;          // of the host, for this rank
    std::string device_note;  // why device.kind auto has not taken a GPU, where that is odd
    CeilingRecord ceiling;    // what a rank can do, as run.roofline has it found out
    int repetition = 1;       // of `repetitions`, from 1
    int repetitions = 1;      // run.repeat
    std::vector<meters::Counter> counters = {};  // that this rank reads while its group trains
    bool resumes = false;                        // a run that another program has begun
    std::string program_started_utc = {};        // of this program
    Stopwatch since_program_start = {};
    std::string program_sha256 = {};                      // of this program's file
    DeterminismRecord determinism = {};                   // what the devices promise
    std::map<std::string, std::string> environment = {};  // allow-listed facts
    std::shared_ptr<storage::FileLock> lock = nullptr;    // of the output, at the leaders
    bool exit_ends_others = true;  // of this process, while others are at work
};

}  // namespace hpcai::benchmark
