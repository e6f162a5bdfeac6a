// SPDX-License-Identifier: Apache-2.0
#include "climate_listing.hpp"

#include <span>
#include <system_error>

#include <hpcai/base/error.hpp>
#include <hpcai/data/record_set.hpp>
#include <hpcai/data/transcode.hpp>
#include <hpcai/storage/manifest.hpp>

#include "read_at_one_rank.hpp"

namespace hpcai::data::climate {
namespace {

namespace fs = std::filesystem;

/// Returns the maximum if there is no such file, because opening it gives a better message.
std::uint64_t size_of(const fs::path& path) {
    std::error_code ignored;
    return fs::file_size(path, ignored);
}

std::vector<ListedFile> list_locally(const std::string& path) {
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

/// The files of one data set, all in the folder `root`.
struct SetFiles {
    fs::path root;
    std::vector<std::string> names;

    HPCAI_RECORD(SetFiles, root, names);
};

SetFiles find_set_files(const std::string& path) {
    std::error_code error;
    SetFiles files;
    if (fs::is_regular_file(fs::path(path) / kRecordIndexName, error)) {
        files = {path, {kRecordIndexName}};
        for (const IndexedFile& file : read_record_index(path).files) {
            files.names.push_back(file.name);
        }
    } else {
        for (const fs::path& file : climate_files_at(path)) {
            files.root = file.has_parent_path() ? file.parent_path() : ".";
            files.names.push_back(file.filename().string());
        }
    }
    if (fs::is_regular_file(files.root / storage::kManifestName, error)) {
        files.names.push_back(storage::kManifestName);
    }
    return files;
}

/// Returns the path of the staged copy of `path`, or `path` itself if it is not staged.
std::string staged_path(const std::string& path, const fs::path& folder) {
    if (folder.empty()) return path;
    std::error_code error;
    return (fs::is_directory(path, error) ? folder : folder / fs::path(path).filename()).string();
}

}  // namespace

std::vector<ListedFile> list_files(const std::string& path, comm::Communicator& ranks) {
    auto files = read_at_one_rank(ranks, [&] { return list_locally(path); });
    std::vector<std::int64_t> verified(files.size(), 0);
    const auto size = static_cast<std::size_t>(ranks.size());
    // Synchronize after each file, so that no rank waits longer than the time for one file.
    for (std::size_t first = 0; first < files.size(); first += size) {
        comm::collective_try(ranks, [&] {
            const std::size_t mine = first + static_cast<std::size_t>(ranks.rank());
            if (mine >= files.size()) return;
            require_same_size(files[mine]);
            verified[mine] = storage::matches_manifest(files[mine].path) ? 1 : 0;
        });
    }
    ranks.all_reduce_sum(std::span(verified));
    for (std::size_t i = 0; i < files.size(); ++i) files[i].is_verified = verified[i] > 0;
    return files;
}

void require_same_size(const ListedFile& file) {
    const std::uint64_t here = size_of(file.path);
    require(here == file.bytes, ExitCode::data,
            "'{}' is not the same file for all ranks: {} bytes here, {} on rank 0",
            file.path.string(), here, file.bytes);
}

config::Config stage_climate(const config::Config& config, comm::Communicator& group,
                             DataDuplicator& duplicator) {
    const auto add = [&](Split split, const std::string& path) {
        const SetFiles files = read_at_one_rank(group, [&] { return find_set_files(path); });
        duplicator.add_files(split,
                             {files.root, static_cast<std::uint32_t>(files.names.size()),
                              [names = files.names](std::uint32_t file) { return names[file]; }});
    };
    add(Split::training, config.data.path);
    add(Split::validation, config.data.validation_path);
    duplicator.run();
    config::Config local = config;
    local.data.path = staged_path(config.data.path, duplicator.folder(Split::training));
    local.data.validation_path =
        staged_path(config.data.validation_path, duplicator.folder(Split::validation));
    return local;
}

}  // namespace hpcai::data::climate
