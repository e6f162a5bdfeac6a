// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <hpcai/records/run_record.hpp>
#include <hpcai/workloads/inspector.hpp>

namespace hpcai::verification {

using workloads::Finding;

struct Verification {
    std::string manifest;             // SHA-256 of manifest.sha256; empty: there is none
    std::vector<Finding> findings;    // none: all holds
    std::optional<RunRecord> record;  // as stored; nothing where result.json cannot be read
};

}  // namespace hpcai::verification
