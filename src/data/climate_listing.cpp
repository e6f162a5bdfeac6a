// SPDX-License-Identifier: Apache-2.0
#include "climate_listing.hpp"

#include <span>
#include <system_error>

#include <hpcai/base/error.hpp>
#include <hpcai/data/record_index.hpp>
#include <hpcai/data/transcode.hpp>
#include <hpcai/storage/manifest.hpp>

#include "read_at_one_rank.hpp"

namespace hpcai::data::climate {

namespace {

namespace fs = std::filesystem;

/// The largest number where there is no such file, which opening it tells better.
std::uint64_t size_of(const fs::path& path) {
    std::error_code ignored;
    return fs::file_size(path, ignored);
}

std::vector<ListedFile> list_here(const std::string& path) {
    std::vector<ListedFile> files;
    std::error_code ignored;
    if (fs::is_regular_file(fs::path(path) / kRecordIndexName, ignored)) return files;
    for (const fs::path& file : climate_files_at(path)) {
        require(fs::is_regular_file(file, ignored), ExitCode::data,
                "cannot read '{}': not a regular file", file.string());
        files.push_back({file, size_of(file), false});
    }
    return files;
}

}  // namespace

std::vector<ListedFile> list_files(const std::string& path, comm::Communicator& ranks) {
    auto files = read_at_one_rank(ranks, [&] { return list_here(path); });
    std::vector<std::int64_t> vouched(files.size(), 0);
    const auto size = static_cast<std::size_t>(ranks.size());
    // Together after each file, so that none waits for longer than one file takes.
    for (std::size_t first = 0; first < files.size(); first += size) {
        comm::collective_try(ranks, [&] {
            const std::size_t mine = first + static_cast<std::size_t>(ranks.rank());
            if (mine >= files.size()) return;
            require_same(files[mine]);
            vouched[mine] = storage::matches_manifest(files[mine].path) ? 1 : 0;
        });
    }
    ranks.all_reduce_sum(std::span(vouched));
    for (std::size_t i = 0; i < files.size(); ++i) files[i].is_vouched_for = vouched[i] > 0;
    return files;
}

void require_same(const ListedFile& file) {
    const std::uint64_t here = size_of(file.path);
    require(here == file.bytes, ExitCode::data,
            "'{}' is not the same file for all ranks: {} bytes here, {} at rank 0",
            file.path.string(), here, file.bytes);
}

}  // namespace hpcai::data::climate
