// SPDX-License-Identifier: Apache-2.0
#include "stage_climate.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include <hpcai/data/record_index.hpp>
#include <hpcai/data/transcode.hpp>
#include <hpcai/storage/manifest.hpp>

#include "read_at_one_rank.hpp"

namespace hpcai::data {

namespace {

namespace fs = std::filesystem;

/// Files that open one set, in one folder.
struct Files {
    fs::path root;
    std::vector<std::string> names;

    HPCAI_RECORD(Files, root, names);
};

Files files_of(const std::string& path) {
    std::error_code error;
    Files files;
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

/// What has to be opened in the place of `path`.
std::string copy_of(const std::string& path, const fs::path& folder) {
    if (folder.empty()) return path;
    std::error_code error;
    return (fs::is_directory(path, error) ? folder : folder / fs::path(path).filename()).string();
}

}  // namespace

config::Config stage_climate(const config::Config& config, comm::Communicator& group,
                             DataDuplicator& duplicator) {
    const auto add = [&](Split split, const std::string& path) {
        const Files files = read_at_one_rank(group, [&] { return files_of(path); });
        duplicator.add_files(split,
                             {files.root, static_cast<std::uint32_t>(files.names.size()),
                              [names = files.names](std::uint32_t file) { return names[file]; }});
    };
    add(Split::training, config.data.path);
    add(Split::validation, config.data.validation_path);
    duplicator.run();
    config::Config local = config;
    local.data.path = copy_of(config.data.path, duplicator.folder(Split::training));
    local.data.validation_path =
        copy_of(config.data.validation_path, duplicator.folder(Split::validation));
    return local;
}

}  // namespace hpcai::data
