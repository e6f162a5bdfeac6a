// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include <hpcai/base/error.hpp>
#include <hpcai/config/reader.hpp>

namespace hpcai::speed {

/// The request of `hpcai500 doctor`.
struct DoctorRequest {
    config::Sources config;
    std::string output;   // result directory; empty: run.output, or a new one in results
    bool golden = false;  // whether every rank trains 20 steps alone, to compare parameters bitwise
    std::string command_line;
};

/// Checks the launch in stages, on all ranks. If a stage exceeds its time limit, the process
/// reports the stage and exits with ExitCode::launch. Rank 0 prints the findings to `out`. Leaves
/// no files. Returns the first code other than ok among the findings, else ok. Parameters
/// that differ between ranks after the golden steps are a finding with ExitCode::mismatch.
ExitCode run_doctor(const DoctorRequest& request, std::ostream& out);

}  // namespace hpcai::speed
