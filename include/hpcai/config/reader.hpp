// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/config/config.hpp>

namespace hpcai::config {

/// Parses one YAML document strictly and applies `overrides` ("training.batch_size=64") on top.
/// `file_name` only appears in messages ("quickstart.yaml:3:5: ...").
/// Throws Error(usage) for the first thing wrong: unknown, duplicate or ill-typed keys, aliases,
/// merge keys, second documents, values outside their legal range, settings that contradict.
Config parse(const std::string& yaml, const std::string& file_name,
             const std::vector<std::string>& overrides);

/// The file's bytes. Throws Error(usage) naming the file when it cannot be read or exceeds 1 MiB.
std::string read_file(const std::string& path);

}  // namespace hpcai::config
