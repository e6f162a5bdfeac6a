// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/config/config.hpp>

namespace hpcai::cli {

/// Returns lines of Python that predict with torchvision, from the files `settings` (JSON) and
/// `weights` (safetensors) of `export`. Empty if torchvision does not have the model.
std::string python_lines(const config::Config& config, const std::string& settings,
                         const std::string& weights);

}  // namespace hpcai::cli
