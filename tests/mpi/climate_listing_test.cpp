// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/climate_file.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/storage/manifest.hpp>

#include "storage/temporary_folder.hpp"
#include "world.hpp"

/// ExtremeWeather files; one rank compares the manifest of each. Every rank has a separate folder,
/// like nodes with separate disks.
namespace hpcai::data {
namespace {

namespace fs = std::filesystem;
using mpi_tests::world;

constexpr int kFiles = 5;

class ListedFiles : public testing::Test {
protected:
    ListedFiles() {
        config_.workload.image_size = 8;
        config_.workload.image_width = 12;
        config_.workload.channels = kClimateChannels;
        config_.workload.classes = kClimateCategories;
        config_.data.kind = config::DataKind::climate_hdf5;
        config_.data.path = "train";
        config_.data.validation_path = "test.h5";
        config_.data.max_boxes = 15;
        before_ = fs::current_path();
        fs::current_path(folder_.path());
        fs::create_directory("train");
        write("test.h5");
        for (int file = 0; file < kFiles; ++file) write(name_of(file));
        storage::write_manifest("train");
    }
    ~ListedFiles() override { fs::current_path(before_); }

    static std::string name_of(int file) { return "train/" + std::to_string(file) + ".h5"; }
    static void write(const std::string& path) {
        ClimateFileWriter writer(path, {1, 8, 12, {}});
        writer.write(0, std::vector<float>(kClimateChannels * 8 * 12, 60.0F), {});
        writer.finish();
    }
    /// Replaces a file by another one of the same size with another SHA-256.
    static void change(int file) {
        const fs::path path = name_of(file);
        const auto bytes = fs::file_size(path);
        std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekp(static_cast<std::streamoff>(bytes) - 1);
        stream.put('x');
    }
    void expect_refused(const std::string& part) {
        std::string said = "accepted";
        try {
            make_sample_sets(config_, world().everyone);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::data);
            said = error.what();
        }
        EXPECT_NE(said.find(part), std::string::npos) << said;
    }

    fs::path before_;
    storage::TemporaryFolder folder_;
    config::Config config_;
};

TEST_F(ListedFiles, AreHashedByOneRankEach) {
    const comm::Communicator& everyone = world().everyone;
    if (everyone.size() == 1) GTEST_SKIP() << "one rank hashes all files";
    for (int file = 0; file < kFiles; ++file) {
        if (file % everyone.size() != everyone.rank())
            change(file);  // only this rank's copy changes
    }
    const SampleSets sets = make_sample_sets(config_, world().everyone);
    EXPECT_EQ(sets.training->samples(), kFiles);
}

TEST_F(ListedFiles, ThatOneRankFindsChangedAreRejectedByAll) {
    const comm::Communicator& everyone = world().everyone;
    const int last = everyone.size() - 1;
    if (everyone.rank() == last) change(last);
    expect_refused(name_of(last) + "' is not the file that");
}

TEST_F(ListedFiles, ThatAreShorterAtOneRankAreRejectedByAll) {
    const comm::Communicator& everyone = world().everyone;
    if (everyone.size() == 1) GTEST_SKIP() << "one rank has one file";
    if (everyone.rank() == everyone.size() - 1) {
        for (int file = 0; file < kFiles; ++file) fs::resize_file(name_of(file), 100);
    }
    expect_refused("is not the same file for all ranks: 100 bytes here");
}

}  // namespace
}  // namespace hpcai::data
