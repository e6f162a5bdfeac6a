// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/base/roofline_record.hpp>

namespace hpcai::speed {

/// What `hpcai500 roofline` is asked.
struct RooflineRequest {
    std::string config_path;             // empty: the defaults, in batches of 8 samples
    std::vector<std::string> overrides;  // "section.key=value"
    double seconds = 20;                 // that all measurements together are to take
    bool one_precision = false;          // that of the configuration only
    std::string command_line;
};

/// Measures this machine with the configured model's operations, as one rank of a launch or alone;
/// MPI is started in a launch of several ranks only. Rank 0 hands what was measured to `use`.
/// Returns the exit code. In such a launch a failure is printed once and its code returned; alone
/// it throws as the configuration, the device and `use` do.
ExitCode run_roofline(const RooflineRequest& request,
                      const std::function<void(const RooflineRecord&)>& use);

}  // namespace hpcai::speed
