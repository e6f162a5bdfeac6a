// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <hpcai/records/run_record.hpp>

namespace hpcai::verification {

/// What does not hold in a result directory.
struct Finding {
    std::string file;  // relative to the directory
    std::string text;  // what it says and what it must be
    bool operator==(const Finding&) const = default;
};

struct Verification {
    std::string manifest;             // SHA-256 of manifest.sha256; empty: there is none
    std::vector<Finding> findings;    // none: all holds
    std::optional<RunRecord> record;  // as stored; nothing where result.json cannot be read
};

}  // namespace hpcai::verification
