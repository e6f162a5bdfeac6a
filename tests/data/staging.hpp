// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/data/data_duplicator.hpp>

#include "fixtures.hpp"
#include "support/files_below.hpp"

namespace hpcai::data::test {

using Bytes = std::vector<std::uint8_t>;

/// Numbered files of random bytes, "a/<number>", in a folder that represents the shared file
/// system.
class SharedFiles {
public:
    explicit SharedFiles(std::filesystem::path root) : root_(std::move(root)) {}

    const std::filesystem::path& root() const { return root_; }
    std::uint32_t files() const { return static_cast<std::uint32_t>(contents_.size()); }
    std::string name(std::uint32_t file) const { return "a/" + std::to_string(file); }
    std::filesystem::path path(std::uint32_t file) const { return root_ / name(file); }
    const Bytes& bytes(std::uint32_t file) const { return contents_[file]; }

    /// Adds a file whose bytes depend only on its number. If `written`, the file is also created.
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

/// Staged samples after run(), during the lifetime of their folder.
struct Staged {
    std::shared_ptr<const StagedPictures> pictures;
    StagingRecord record;
    std::shared_ptr<StagingLock> staging_lock;
};

/// The duplicator of a run of one rank.
class LoneDuplicator {
public:
    explicit LoneDuplicator(const config::Config& config)
        : duplicator(config, controller_, *alone_, 2) {}

private:
    std::unique_ptr<comm::Communicator> alone_ = comm::make_self_communicator();
    plan::ParallelismController controller_{{1, 1, 1}, {0}};

public:
    DataDuplicator duplicator;
};

inline Staged stage_at_one_rank(const config::Config& config, const StagingRequest& request) {
    LoneDuplicator lone(config);
    lone.duplicator.add_pictures(Split::training, request);
    lone.duplicator.run();
    return {lone.duplicator.pictures(Split::training), lone.duplicator.result().record,
            lone.duplicator.result().lock};
}

/// Returns the exit code and message of the error that run() throws.
template <typename Run>
std::pair<ExitCode, std::string> refused(const Run& run) {
    try {
        run();
    } catch (const Error& error) {
        return {error.code(), error.what()};
    }
    return {ExitCode::ok, "accepted"};
}

inline constexpr std::size_t kKib = 1024;

/// Twelve files of 0.3 to 0.5 MiB; a pack of at most 1 MiB has one to three of them.
class TwelveFiles : public testing::Test {
protected:
    TwelveFiles() : shared_(folder_.path() / "shared"), config_(staging_config(local())) {
        std::filesystem::create_directories(local());
        for (int file = 0; file < 12; ++file) shared_.add((300 + 17 * file) * kKib + 1);
    }

    std::filesystem::path local() const { return folder_.path() / "local"; }
    std::filesystem::path stage() const {
        return local() / ("hpcai500-stage-" + std::to_string(geteuid()));
    }
    std::filesystem::path training() const { return stage() / "training"; }
    Staged run() const { return stage_at_one_rank(config_, shared_.request()); }
    std::int64_t all_bytes() const {
        std::int64_t bytes = 0;
        for (std::uint32_t file = 0; file < shared_.files(); ++file) {
            bytes += static_cast<std::int64_t>(shared_.bytes(file).size());
        }
        return bytes;
    }
    void expect_all(const Staged& staged) const {
        for (std::uint32_t file = 0; file < shared_.files(); ++file) {
            EXPECT_EQ(staged.pictures->read(file), shared_.bytes(file)) << file;
        }
    }
    void flip_byte(const std::filesystem::path& path, std::size_t offset) const {
        Bytes bytes = read_file_bytes(path);
        bytes.at(offset) ^= 1;
        write_file_bytes(path, bytes);
    }
    std::int64_t bytes_of_packs() const {
        std::int64_t bytes = 0;
        for (const std::string& name : tests::files_below(training())) {
            if (name.ends_with(".index")) continue;
            bytes += static_cast<std::int64_t>(std::filesystem::file_size(training() / name));
        }
        return bytes;
    }

    TemporaryFolder folder_;
    SharedFiles shared_;
    config::Config config_;
};

}  // namespace hpcai::data::test
