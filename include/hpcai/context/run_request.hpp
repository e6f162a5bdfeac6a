// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace hpcai::context {

struct RunRequest {
    std::string config_path;
    std::vector<std::string> overrides;  // "section.key=value"
    std::string output;                  // directory; empty: run.output, else results/<name>-<UTC>
    std::string command_line;            // for the environment's record
    std::string resume =
        {};  // result directory of a run to resume; config_path, overrides and output are empty
};

}  // namespace hpcai::context
