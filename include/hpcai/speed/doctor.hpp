// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include <hpcai/base/error.hpp>

namespace hpcai::speed {

/// What `hpcai500 doctor` is asked.
struct DoctorRequest {
    std::string config_path;             // empty: the defaults
    std::vector<std::string> overrides;  // "section.key=value"
    std::string output;                  // result directory; empty: run.output, else in results
    bool golden = false;                 // every rank takes 20 steps by itself
    std::string command_line;
};

/// Examines the launch of which this is a rank, stage by stage, each with a time limit behind which
/// the process ends with ExitCode::launch and says where; rank 0 prints what there is to `out`.
/// Trains nothing and leaves nothing behind. Returns the code of the first finding that would stop
/// a run, ok where there is none; ExitCode::mismatch where ranks compute different bits.
ExitCode run_doctor(const DoctorRequest& request, std::ostream& out);

}  // namespace hpcai::speed
