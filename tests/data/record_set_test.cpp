// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include <hpcai/data/record_set.hpp>
#include <hpcai/storage/manifest.hpp>

#include "transcoded_files.hpp"

/// Validation of records on disk.
namespace hpcai::data {
namespace {

using test::kOne;
using testing::HasSubstr;

class Records : public test::Transcode {
protected:
    Records() {
        write_two_files();
        transcode(options_);
    }
    std::string open_message() const {
        try {
            const RecordSet set(options_.output);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::data);
            return error.what();
        }
        return "no error";
    }
    std::filesystem::path file() const { return options_.output / "records-00001.bin"; }
    /// Removes the manifest, so that the index can be edited.
    void remove_manifest() const {
        EXPECT_TRUE(std::filesystem::remove(options_.output / storage::kManifestName));
    }
};

TEST_F(Records, ADamagedOneIsFoundAtItsFirstTouch) {
    auto bytes = test::read_file_bytes(file());
    bytes[bytes.size() / 2] ^= 1;  // in the second of three records
    test::write_file_bytes(file(), bytes);
    const RecordSet set(options_.output);
    EXPECT_NO_THROW(set.record(2));
    EXPECT_NO_THROW(set.record(4));
    for (int attempt = 0; attempt < 2; ++attempt) {
        try {
            set.record(3);
            ADD_FAILURE() << "no error";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::data);
            EXPECT_THAT(error.what(),
                        HasSubstr("records-00001.bin': record 1 (b.h5/1) is damaged"));
        }
    }
}

TEST_F(Records, ReportWhetherAllNumbersAreFinite) {
    auto bytes = test::read_file_bytes(file());
    bytes[10] = 0x00;
    bytes[11] = 0xFC;  // -infinity in fp16
    test::write_file_bytes(file(), bytes);
    const auto sum = ::crc32_z(0, bytes.data(), kOne * 2);
    const std::filesystem::path path = options_.output / kRecordIndexName;
    remove_manifest();
    auto index = nlohmann::json::parse(std::ifstream(path));
    index["files"][1]["records"][0]["crc32"] = fmt::format("{:08x}", sum);
    std::ofstream(path) << index;
    const RecordSet set(options_.output);
    EXPECT_TRUE(set.is_finite(0));
    EXPECT_FALSE(set.is_finite(2));
    EXPECT_TRUE(set.is_finite(3));
}

TEST_F(Records, AFileOfAnotherSizeOrKindIsRejected) {
    std::filesystem::resize_file(file(), 100);
    EXPECT_THAT(open_message(), HasSubstr("has 100 bytes, expected"));
    std::filesystem::remove(file());
    EXPECT_THAT(open_message(), HasSubstr("cannot read"));
    std::filesystem::create_directory(file());
    EXPECT_THAT(open_message(), HasSubstr("not a regular file"));
}

TEST_F(Records, AnEditedIndexIsRejected) {
    EXPECT_EQ(open_message(), "no error");
    const std::filesystem::path path = options_.output / kRecordIndexName;
    auto index = nlohmann::json::parse(std::ifstream(path));
    index["mean"][0] = 1.8e19;
    std::ofstream(path) << index;
    EXPECT_THAT(open_message(), HasSubstr("its SHA-256 differs"));
}

TEST_F(Records, AnUnsoundIndexIsRejected) {
    const std::filesystem::path path = options_.output / kRecordIndexName;
    remove_manifest();
    const auto bytes = test::read_file_bytes(path);
    const std::string sound(bytes.begin(), bytes.end());
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = sound;
        const std::size_t place = text.find(from);
        EXPECT_NE(place, std::string::npos) << from;
        std::ofstream(path) << text.replace(place, from.size(), to);
        return open_message();
    };
    EXPECT_THAT(with("records-1", "records-2"), HasSubstr("schema"));
    EXPECT_THAT(with("\"fp16\"", "\"fp17\""), HasSubstr("dtype"));
    EXPECT_THAT(with("\"height\":6", "\"height\":0"), HasSubstr("height"));
    EXPECT_THAT(with("\"height\":6", "\"height\":12"), HasSubstr("expected"));
    EXPECT_THAT(with("\"width\":8", "\"width\":1e9"), HasSubstr("width"));
    EXPECT_THAT(with("\"PS\",", ""), HasSubstr("mean"));
    EXPECT_THAT(with("\"mean\":[", "\"mean\":[\"x\","), HasSubstr("mean"));
    EXPECT_THAT(with("\"standard_deviation\":[", "\"standard_deviation\":[0,"),
                HasSubstr("standard_deviation"));
    EXPECT_THAT(with("records-00000.bin", "../records.bin"), HasSubstr("name"));
    EXPECT_THAT(with("[5.0,1.0,7.0,3.0,1]", "[5.0,1.0,9.0,3.0,1]"), HasSubstr("boxes"));
    EXPECT_THAT(with("[5.0,1.0,7.0,3.0,1]", "[5.0,1.0,7.0,3.0,0]"), HasSubstr("boxes"));
    EXPECT_THAT(with("[5.0,1.0,7.0,3.0,1]", "[7.0,1.0,5.0,3.0,1]"), HasSubstr("boxes"));
    EXPECT_THAT(with("\"crc32\":\"", "\"crc32\":\"+"), HasSubstr("crc32"));
    EXPECT_THAT(with("\"number\":0", "\"number\":-1"), HasSubstr("number"));
    EXPECT_THAT(with("{", ""), HasSubstr(kRecordIndexName));
    std::ofstream(path) << sound;
    EXPECT_EQ(open_message(), "no error");
}

}  // namespace
}  // namespace hpcai::data
