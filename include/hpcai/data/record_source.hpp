// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace hpcai::data {

inline constexpr const char* kRecordIndexName = "records.json";

/// One file that records were made of.
struct RecordSource {
    std::string name;
    std::string generator;          // ClimateFile::generator()
    std::uint32_t fingerprint = 0;  // CRC-32 of the checksums of its records
};

}  // namespace hpcai::data
