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
    std::uint64_t bytes = 0;      // at rank 0
    bool is_vouched_for = false;  // a manifest beside it lists it, and it is that file

    HPCAI_RECORD(ListedFile, path, bytes, is_vouched_for);
};

/// The HDF5 files that `path` stands for at rank 0, for all ranks; none where it is a folder of
/// records. Each is compared with the manifest beside it, if there is one, by one of the ranks.
/// Throws Error(data) on every rank for what a rank finds. Collective.
std::vector<ListedFile> list_files(const std::string& path, comm::Communicator& ranks);

/// Throws Error(data) unless the file has as many bytes here.
void require_same(const ListedFile& file);

/// Copies the HDF5 files or records of weather that data.staging wants, with the manifest beside
/// them. Returns `config` with the paths of the copies. Collective; throws Error(data) when the
/// files cannot be listed, and what the duplicator throws.
config::Config stage_climate(const config::Config& config, comm::Communicator& group,
                             DataDuplicator& duplicator);

}  // namespace hpcai::data::climate
