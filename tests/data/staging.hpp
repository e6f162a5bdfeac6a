// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/data/data_duplicator.hpp>

#include "fixtures.hpp"

namespace hpcai::data::test {

using Bytes = std::vector<std::uint8_t>;

/// Numbered files of random bytes, "a/<number>", on what plays the shared file system.
class SharedFiles {
public:
    explicit SharedFiles(std::filesystem::path root) : root_(std::move(root)) {}

    const std::filesystem::path& root() const { return root_; }
    std::uint32_t files() const { return static_cast<std::uint32_t>(contents_.size()); }
    std::string name(std::uint32_t file) const { return "a/" + std::to_string(file); }
    std::filesystem::path path(std::uint32_t file) const { return root_ / name(file); }
    const Bytes& bytes(std::uint32_t file) const { return contents_[file]; }

    /// The same bytes wherever it is made; `written`: not only known.
    void add(std::size_t size, bool written = true) {
        CounterStream random(5, RandomPurpose::test, files());
        Bytes bytes(size);
        for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.next_u32());
        if (written) write_file_bytes(path(files()), bytes);
        contents_.push_back(std::move(bytes));
    }
    StagingRequest request() const {
        return {root_, files(), [this](std::uint32_t file) { return name(file); }};
    }

private:
    std::filesystem::path root_;
    std::vector<Bytes> contents_;
};

inline config::Config staging_config(const std::filesystem::path& directory) {
    config::Config config;
    config.bagging.sampler = config::Sampler::none;
    config.bagging.out_of_bag = false;
    config.data.staging = config::Staging::training;
    config.data.staging_directory = directory.string();
    config.data.staging_pack_mib = 1;
    config.data.staging_reserve_mib = 0;
    return config;
}

/// A stage after run(), as long as it lives.
struct Staged {
    std::shared_ptr<const StagedPictures> pictures;
    StagingRecord record;
    std::shared_ptr<LocalStage> stage;
};

inline Staged stage_at_one_rank(const config::Config& config, const StagingRequest& request) {
    const std::unique_ptr<comm::Communicator> alone = comm::make_self_communicator();
    const plan::ParallelismController controller({1, 1, 1}, {0});
    DataDuplicator duplicator(config, controller, *alone, 2);
    duplicator.add_pictures(Split::training, request);
    duplicator.run();
    return {duplicator.pictures(Split::training), duplicator.record(), duplicator.stage()};
}

/// What run() says when it refuses, and with which exit code.
template <typename Run>
std::pair<ExitCode, std::string> refused(const Run& run) {
    try {
        run();
    } catch (const Error& error) {
        return {error.code(), error.what()};
    }
    return {ExitCode::ok, "accepted"};
}

/// Sorted, relative to the folder.
inline std::vector<std::string> files_below(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
        if (!entry.is_directory()) {
            names.push_back(entry.path().lexically_relative(folder).string());
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace hpcai::data::test
