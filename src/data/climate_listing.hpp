// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/data_duplicator.hpp>
#include <hpcai/records/record_fields.hpp>

namespace hpcai::data::climate {

struct ListedFile {
    std::filesystem::path path;
    std::uint64_t bytes = 0;   // on rank 0
    bool is_verified = false;  // a manifest in its folder lists it, and its SHA-256 matches

    HPCAI_RECORD(ListedFile, path, bytes, is_verified);
};

/// Lists the HDF5 files at `path` on rank 0 and broadcasts them; none if `path` is a folder of
/// records. One rank per file compares it with the manifest in its folder, if there is one. Throws
/// Error(data) on every rank for an error of any rank. Collective.
std::vector<ListedFile> list_files(const std::string& path, comm::Communicator& ranks);

/// Throws Error(data) unless the file has `file.bytes` bytes on this rank.
void require_same_size(const ListedFile& file);

/// Copies the HDF5 files or records that data.staging selects and the manifest in their folder.
/// Returns `config` with the paths of the copies. Throws Error(data) if the files cannot be listed,
/// and the errors of the duplicator. Collective.
config::Config stage_climate(const config::Config& config, comm::Communicator& group,
                             DataDuplicator& duplicator);

}  // namespace hpcai::data::climate
