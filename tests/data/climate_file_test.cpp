// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/data/climate_file.hpp>
#include <hpcai/storage/manifest.hpp>

#include "climate_files.hpp"
#include "fixtures.hpp"

/// A hook of AddressSanitizer. HDF5 1.10.8 reads beyond its own buffers in some damaged files,
/// which is not an error of this program.
extern "C" const char* __asan_default_suppressions() {
    return "interceptor_via_lib:libhdf5";
}

namespace hpcai::data {
namespace {

using test::RawClimateFile;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kTheWayOut =
    "choose the order with --box-order corners or ranges; for a run, write records with "
    "`hpcai500 data transcode PATH --box-order ... --output DIR` and set data.path to DIR";

class ClimateFiles : public testing::Test {
protected:
    std::filesystem::path path() const { return folder_.path() / "climo_1984.h5"; }
    ClimateFile open(const RawClimateFile& raw, const ClimateFileSettings& settings = {}) const {
        test::write_raw(path(), raw);
        return ClimateFile(path(), settings);
    }
    /// Returns the message of the Error(data) that opening the file throws.
    std::string refusal() const {
        try {
            const ClimateFile file(path());
            return "no error";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::data) << error.what();
            return error.what();
        }
    }
    std::string refusal_of(const std::function<void(RawClimateFile&)>& change) const {
        RawClimateFile raw;
        change(raw);
        test::write_raw(path(), raw);
        const std::string message = refusal();
        EXPECT_THAT(message, HasSubstr("climo_1984.h5"));
        return message;
    }

    test::TemporaryFolder folder_;
};

TEST_F(ClimateFiles, GiveBackWhatTheWriterGot) {
    std::vector<float> first(16 * 4 * 6), second(16 * 4 * 6);
    for (std::size_t i = 0; i < first.size(); ++i) {
        first[i] = static_cast<float>(i) * 0.5F;
        second[i] = -static_cast<float>(i);
    }
    second[7] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<Box> boxes{{0, 1, 4, 3, 1}, {2, 0, 6, 4, 4}};
    ClimateFileWriter writer(path(), {2, 4, 6, {{"made_by", "a test"}}});
    writer.write(1, second, {});
    writer.write(0, first, boxes);
    EXPECT_FALSE(std::filesystem::exists(path()));
    writer.finish();

    const ClimateFile file(path());
    EXPECT_EQ(file.samples(), 2);
    EXPECT_EQ(file.height(), 4);
    EXPECT_EQ(file.width(), 6);
    EXPECT_EQ(file.box_order(), BoxOrder::corners);
    EXPECT_EQ(file.level(), GeopotentialLevel::hpa_1000);
    EXPECT_EQ(file.chunk_samples(), 1);
    EXPECT_EQ(file.boxes(0), boxes);
    EXPECT_TRUE(file.boxes(1).empty());
    std::vector<float> both(2 * first.size());
    file.read(0, 2, both);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), both.begin()));
    EXPECT_TRUE(std::isnan(both[first.size() + 7]));
    EXPECT_EQ(both.back(), second.back());
    std::vector<float> one(first.size());
    file.read(0, 1, one);
    EXPECT_EQ(one, first);
}

TEST_F(ClimateFiles, AnUnfinishedOneLeavesNothing) {
    { ClimateFileWriter(path(), {2, 4, 6, {}}).write(0, std::vector<float>(16 * 4 * 6), {}); }
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
    EXPECT_THROW(ClimateFileWriter("/proc/none/x.h5", {2, 4, 6, {}}), Error);
}

TEST_F(ClimateFiles, InferTheOrderOfColumnsFromTheBoxes) {
    RawClimateFile raw;
    raw.boxes = {{1, 5, 3, 7, 0}, {4, 1, 6, 3, 1}};  // valid only as ymin, xmin, ymax, xmax
    const std::vector<Box> expected{{5, 1, 7, 3, 1}, {1, 4, 3, 6, 2}};
    {
        const ClimateFile corners = open(raw);
        EXPECT_EQ(corners.box_order(), BoxOrder::corners);
        EXPECT_EQ(corners.boxes(0), expected);
    }
    raw.boxes = {{1, 3, 5, 7, 0}, {4, 6, 1, 3, 1}};  // valid only as ymin, ymax, xmin, xmax
    const ClimateFile ranges = open(raw);
    EXPECT_EQ(ranges.box_order(), BoxOrder::ranges);
    EXPECT_EQ(ranges.boxes(0), expected);
}

TEST_F(ClimateFiles, RejectColumnsThatFitBothOrdersOrNeitherUnlessConfigured) {
    EXPECT_THAT(refusal_of([](auto& raw) {
                    raw.boxes = {{1, 2, 3, 4, 0}};
                }),
                AllOf(HasSubstr("are both possible"), HasSubstr(kTheWayOut)));
    EXPECT_EQ(ClimateFile(path(), {BoxOrder::corners}).boxes(0)[0], (Box{2, 1, 4, 3, 1}));
    EXPECT_EQ(ClimateFile(path(), {BoxOrder::ranges}).boxes(0)[0], (Box{3, 1, 4, 2, 1}));
    EXPECT_THAT(refusal_of([](auto& raw) {
                    raw.boxes = {{1, 5, 3, 7, 0}, {1, 3, 5, 4, 0}, {4, 3, 1, 2, 0}};
                }),
                HasSubstr("the rows fit neither"));
    // There are 8 columns and 6 rows: 8 fits the second number only in the order xmin ...
    EXPECT_THAT(refusal_of([](auto& raw) {
                    raw.boxes = {{1, 2, 7, 7, 0}, {1, 2, 3, 9, 0}};
                }),
                HasSubstr("within 6 x 8 pixels"));
}

TEST_F(ClimateFiles, AreRejectedWhenTheBoxesContradictTheirAttribute) {
    ClimateFileWriter writer(path(), {1, 6, 8, {}});
    writer.write(0, std::vector<float>(16 * 6 * 8), std::vector<Box>{{5, 1, 7, 3, 1}});
    writer.finish();
    EXPECT_EQ(ClimateFile(path()).box_order(), BoxOrder::corners);
    const hid_t file = H5Fopen(path().c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t boxes = H5Dopen2(file, "boxes", H5P_DEFAULT);
    std::vector<std::int32_t> rows(kMaxClimateBoxes * 5, -1);
    std::copy_n(std::array{1, 3, 5, 7, 0}.begin(), 5, rows.begin());
    std::copy_n(std::array{4, 6, 1, 3, 0}.begin(), 5, rows.begin() + 5);  // valid only as ranges
    H5Dwrite(boxes, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows.data());
    H5Dclose(boxes);
    H5Fclose(file);
    EXPECT_THAT(refusal(),
                AllOf(HasSubstr("sample 0, row 1: the box is not possible in the column order"),
                      HasSubstr(kTheWayOut)));
    EXPECT_EQ(ClimateFile(path(), {BoxOrder::ranges}).boxes(0)[1], (Box{1, 4, 3, 6, 1}));
}

TEST_F(ClimateFiles, WithoutAnyBoxAreSound) {
    const ClimateFile file = open({});
    EXPECT_TRUE(file.boxes(0).empty());
    EXPECT_TRUE(file.boxes(1).empty());
    EXPECT_EQ(file.dropped_boxes(), 0);
}

TEST_F(ClimateFiles, ClipBoxesAndDropThoseWithoutArea) {
    RawClimateFile raw;
    raw.boxes = {{-1, 2, 9, 20, 3}, {2, 2, 2, 5, 0}, {4, 6, 2, 3, 1}, {6, 8, 9, 9, 2}};
    const ClimateFile file = open(raw, {BoxOrder::corners});
    EXPECT_EQ(file.boxes(0), (std::vector<Box>{{2, 0, 8, 6, 4}}));
    EXPECT_EQ(file.dropped_boxes(), 3);
}

TEST_F(ClimateFiles, RejectClassesOutOfRange) {
    EXPECT_THAT(refusal_of([](auto& raw) {
                    raw.boxes = {{1, 5, 3, 7, 4}};
                }),
                HasSubstr("boxes: sample 0, row 0: class 4: expected 0 to 3"));
    EXPECT_THAT(refusal_of([](auto& raw) {
                    raw.boxes = {{1, 5, 3, 7, 0}, {1, 5, 3, 7, -1}};
                }),
                HasSubstr("row 1: class -1"));
}

TEST_F(ClimateFiles, NameThePressureLevelOfChannel13) {
    RawClimateFile raw;
    raw.values.assign(2 * 16 * 6 * 8, 1999.0F);
    EXPECT_EQ(open(raw).level(), GeopotentialLevel::hpa_1000);
    raw.values.assign(2 * 16 * 6 * 8, 16000.0F);
    EXPECT_EQ(open(raw).level(), GeopotentialLevel::hpa_100);
    raw.values.assign(2 * 16 * 6 * 8, std::numeric_limits<float>::quiet_NaN());
    EXPECT_EQ(open(raw).level(), GeopotentialLevel::unknown);
}

TEST_F(ClimateFiles, AreReadThroughChunksAcrossSamplesAndDeflate) {
    RawClimateFile raw;
    raw.image_extents[0] = raw.box_extents[0] = 5;
    raw.chunk = {3, 1, 4, 4};
    raw.deflate = true;
    const ClimateFile file = open(raw);
    EXPECT_EQ(file.chunk_samples(), 3);
    constexpr std::size_t kOne = 16 * 6 * 8;
    std::vector<float> fields(2 * kOne);
    file.read(2, 2, fields);
    for (std::size_t i = 0; i < fields.size(); ++i) {
        ASSERT_EQ(fields[i], static_cast<float>(2 * kOne + i));
    }
}

TEST_F(ClimateFiles, RejectWrongNamesShapesAndTypes) {
    EXPECT_THAT(refusal_of([](auto& raw) { raw.images_name = "pictures"; }),
                HasSubstr("images: there is no such dataset"));
    EXPECT_THAT(refusal_of([](auto& raw) { raw.boxes_name = "labels"; }),
                HasSubstr("boxes: there is no such dataset"));
    EXPECT_THAT(refusal_of([](auto& raw) {
                    raw.image_extents = {2, 16, 48};
                }),
                HasSubstr("images: expected 4 dimensions, found 3"));
    EXPECT_THAT(refusal_of([](auto& raw) { raw.image_extents[1] = 3; }),
                HasSubstr("found 2 x 3 x 6 x 8"));
    EXPECT_THAT(refusal_of([](auto& raw) { raw.image_extents[0] = 0; }), HasSubstr("found 0 x"));
    EXPECT_THAT(refusal_of([](auto& raw) { raw.box_extents[0] = 3; }),
                HasSubstr("boxes: expected 2 x 15 x 5, found 3 x 15 x 5"));
    EXPECT_THAT(refusal_of([](auto& raw) { raw.box_extents[2] = 4; }),
                HasSubstr("boxes: expected 2 x 15 x 5"));
    EXPECT_THAT(refusal_of([](auto& raw) { raw.image_type = H5T_IEEE_F64LE; }),
                HasSubstr("images: expected floating-point numbers of 4 bytes, found 8"));
    EXPECT_THAT(refusal_of([](auto& raw) { raw.image_type = H5T_STD_I32LE; }),
                HasSubstr("images: expected floating-point numbers"));
    EXPECT_THAT(refusal_of([](auto& raw) { raw.box_type = H5T_IEEE_F32LE; }),
                HasSubstr("boxes: expected integers"));
}

TEST_F(ClimateFiles, StateTheWholeLayoutInTheFirstError) {
    for (const char* words :
         {"images (float32, samples x 16 x height x width)", "boxes (integers, samples x 15 x 5)",
          "ymin, xmin, ymax, xmax in pixels and class 0 to 3", "or -1 in all columns",
          "attribute columns"}) {
        EXPECT_THAT(refusal_of([](auto& raw) { raw.images_name = "pictures"; }), HasSubstr(words));
        EXPECT_THAT(refusal_of([](auto& raw) { raw.box_extents[1] = 7; }), HasSubstr(words));
    }
}

TEST_F(ClimateFiles, RejectSamplesThatNoMemoryHolds) {
    EXPECT_THAT(refusal_of([](auto& raw) {
                    raw.image_extents = {2, 16, 8192, 8193};
                    raw.chunk = {1, 1, 64, 64};
                    raw.has_values = false;
                }),
                HasSubstr("with extents 2 x 16 x 8192 x 8193, a sample has more than 4 GiB"));
}

TEST_F(ClimateFiles, RejectLinksToOtherFiles) {
    test::write_raw(folder_.path() / "other.h5", {});
    const hid_t file = H5Fcreate(path().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("other.h5", "images", file, "images", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    EXPECT_THAT(refusal(), HasSubstr("images: "));
}

TEST_F(ClimateFiles, RejectWhatIsNoHdf5File) {
    EXPECT_THAT(refusal(), HasSubstr("cannot read"));
    std::filesystem::create_directory(path());
    EXPECT_THAT(refusal(), HasSubstr("not a regular file"));
    std::filesystem::remove(path());
    std::ofstream(path()) << "text";
    EXPECT_THAT(refusal(), HasSubstr("cannot be opened as HDF5"));
}

TEST_F(ClimateFiles, AreNotRejectedWhenTheSystemCannotStartAProcessToTryThem) {
    test::write_raw(path(), {});
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const int unused = ::dup(STDIN_FILENO);  // the lowest one
    ::close(unused);
    const rlimit one_more{static_cast<rlim_t>(unused) + 1, before.rlim_max};  // not two for a pipe
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &one_more), 0);
    ExitCode code = ExitCode::ok;
    std::string message;
    try {
        const ClimateFile file(path());
    } catch (const Error& error) {
        code = error.code();
        message = error.what();
    }
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(code, ExitCode::internal);
    EXPECT_EQ(message, "cannot start a process to open the file: Too many open files");
}

TEST_F(ClimateFiles, AreComparedWithAManifestBeforeTheyAreOpened) {
    test::write_raw(path(), {});
    storage::write_manifest(folder_.path());
    EXPECT_EQ(ClimateFile(path()).samples(), 2);
    std::ofstream(path(), std::ios::app) << "x";
    EXPECT_THAT(refusal(), HasSubstr("its SHA-256 differs"));
    std::ofstream(folder_.path() / storage::kManifestName) << "no sum\n";
    EXPECT_THAT(refusal(), HasSubstr("without a SHA-256 digest"));
    std::ofstream(folder_.path() / storage::kManifestName) << std::string(64, 'a') << "\n";
    EXPECT_THAT(refusal(), HasSubstr("without a path"));
}

/// Opens and reads. Returns true on success, false after an Error.
bool is_readable(const std::filesystem::path& path) {
    try {
        const ClimateFile file(path);
        const auto pixels =
            static_cast<std::size_t>(file.height()) * static_cast<std::size_t>(file.width());
        if (pixels > 1'000'000) return true;
        std::vector<float> fields(16 * pixels);
        for (std::int64_t i = 0; i < std::min<std::int64_t>(file.samples(), 8); ++i) {
            file.read(i, 1, fields);
        }
        return true;
    } catch (const Error& error) {
        if (error.code() != ExitCode::data) std::abort();
        return false;
    }
}

/// Exits with 0 if no shortened copy can be opened.
[[noreturn]] void open_shortened(const std::filesystem::path& path) {
    const std::vector<std::uint8_t> whole = test::read_file_bytes(path);
    for (std::size_t size = 0; size < whole.size(); size += 97) {
        auto part = whole;
        part.resize(size);
        test::write_file_bytes(path, part);
        if (is_readable(path)) std::_Exit(1);
    }
    std::_Exit(0);
}

/// Exits with 0 if some copies with one to four changed bytes are rejected, and some are read.
[[noreturn]] void open_changed(const std::filesystem::path& path) {
    const std::vector<std::uint8_t> whole = test::read_file_bytes(path);
    int refused = 0, read = 0;
    for (std::uint32_t copy = 0; copy < 300; ++copy) {
        // Opening copy 252 of stream 2 crashes HDF5 1.10.8.
        CounterStream random(7, RandomPurpose::test, 2, copy);
        auto changed = whole;
        const std::uint32_t bytes = 1 + random.below(4);
        for (std::uint32_t byte = 0; byte < bytes; ++byte) {
            // Half of the changes are in the structure at the file's start.
            const std::size_t range = random.below(2) != 0 ? whole.size() : 3000;
            const auto at = random.below(static_cast<std::uint32_t>(std::min(range, whole.size())));
            changed[at] =
                random.below(3) == 0 ? 0xFF : static_cast<std::uint8_t>(random.next_u32());
        }
        test::write_file_bytes(path, changed);
        ++(is_readable(path) ? read : refused);
    }
    std::_Exit(refused > 0 && read > 0 ? 0 : 1);
}

// Runs in separate processes, because the library keeps objects of a damaged file that it cannot
// close.
TEST_F(ClimateFiles, ShortenedAnywhereAreRejected) {
    RawClimateFile raw;
    raw.chunk = {1, 4, 6, 8};
    raw.deflate = true;
    test::write_raw(path(), raw);
    EXPECT_EXIT(open_shortened(path()), testing::ExitedWithCode(0), "");
}

TEST_F(ClimateFiles, WithAnyBytesChangedAreRejectedOrRead) {
    RawClimateFile raw;
    raw.chunk = {1, 4, 6, 8};
    raw.deflate = true;
    raw.boxes = {{1, 5, 3, 7, 0}, {4, 1, 6, 3, 1}};
    test::write_raw(path(), raw);
    EXPECT_EXIT(open_changed(path()), testing::ExitedWithCode(0), "");
}

TEST_F(ClimateFiles, WithAnyBytesChangedAreRejectedIfTheEndOfProcessesIsNotReported) {
    RawClimateFile raw;
    raw.chunk = {1, 4, 6, 8};
    raw.deflate = true;
    raw.boxes = {{1, 5, 3, 7, 0}, {4, 1, 6, 3, 1}};
    test::write_raw(path(), raw);
    EXPECT_EXIT(
        {
            std::signal(SIGCHLD, SIG_IGN);
            open_changed(path());
        },
        testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hpcai::data
