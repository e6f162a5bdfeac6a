// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include <hpcai/data/image_codec.hpp>
#include <hpcai/data/survey.hpp>

#include "fixtures.hpp"
#include "real_data.hpp"

namespace hpcai::data {
namespace {

TEST(Survey, CountsClassesAndGivesMeanAndDeviationOfAllPixels) {
    const test::TemporaryFolder folder;
    // Uniform grey is unchanged by the codec: 30 x 20 pixels of 100, 10 x 40 of 200.
    test::write_file_bytes(folder.path() / "a" / "1.jpg",
                           encode_jpeg(Image(30, 20, 100).view(), 100));
    test::write_file_bytes(folder.path() / "b" / "1.jpg",
                           encode_jpeg(Image(10, 40, 200).view(), 100));
    const FolderReport report = survey(scan_image_folder(folder.path()), 2);
    EXPECT_EQ(report.exit_code(), ExitCode::ok);
    EXPECT_EQ(report.samples_per_class, (std::vector<std::int64_t>{1, 1}));
    EXPECT_EQ(report.smallest_side, 10);
    EXPECT_EQ(report.median_side, 15) << "of 20 and 10, the shorter sides";
    EXPECT_EQ(report.largest_side, 40);
    EXPECT_EQ(report.pixels, 1000);
    for (std::size_t c = 0; c < 3; ++c) {
        EXPECT_NEAR(report.mean[c], 140.0 / 255, 1e-12);
        EXPECT_NEAR(report.standard_deviation[c], std::sqrt(2400.0) / 255, 1e-12);
    }
}

TEST(Survey, ListsBadFilesWithReasonsInOrderForEveryThreadCount) {
    const test::TemporaryFolder folder;
    const auto good = test::read_fixture("yuv420.jpg");
    auto truncated = good;
    truncated.resize(good.size() / 2);
    for (const char* name : {"1.jpg", "3.jpg", "5.jpg"}) {
        test::write_file_bytes(folder.path() / "a" / name, good);
    }
    test::write_file_bytes(folder.path() / "a" / "2.jpg", truncated);
    test::write_file_bytes(folder.path() / "a" / "4.jpg", {'G', 'I', 'F', '8'});
    test::write_file_bytes(folder.path() / "b" / "1.jpg", {});
    const SampleIndex index = scan_image_folder(folder.path());
    const FolderReport alone = survey(index, 1);
    EXPECT_EQ(alone.exit_code(), ExitCode::data);
    ASSERT_EQ(alone.bad.size(), 3U);
    EXPECT_EQ(alone.bad[0].name, (folder.path() / "a/2.jpg").string());
    EXPECT_NE(alone.bad[0].reason, "");
    EXPECT_EQ(alone.bad[1].reason, "a GIF file, not a JPEG or PNG");
    EXPECT_EQ(alone.bad[2].reason, "the file is empty");
    EXPECT_EQ(alone.samples_per_class, (std::vector<std::int64_t>{5, 1}));
    for (const int threads : {2, 4}) {
        const FolderReport report = survey(index, threads);
        EXPECT_EQ(report.bad, alone.bad);
        EXPECT_EQ(report.mean, alone.mean);
        EXPECT_EQ(report.standard_deviation, alone.standard_deviation);
    }
}

TEST(Survey, ListsWarningsOfGoodFiles) {
    const test::TemporaryFolder folder;
    for (const char* name : {"png_inside.jpg", "warning_version.jpg", "yuv420.jpg"}) {
        test::write_file_bytes(folder.path() / "a" / name, test::read_fixture(name));
    }
    const FolderReport report = survey(scan_image_folder(folder.path()), 2);
    EXPECT_EQ(report.exit_code(), ExitCode::ok);
    EXPECT_EQ(report.pixels, 3 * 45 * 35);
    ASSERT_EQ(report.warnings.size(), 1U);
    EXPECT_EQ(report.warnings[0].name, (folder.path() / "a/warning_version.jpg").string());
    EXPECT_EQ(report.warnings[0].reason, "Warning: unknown JFIF revision number 2.09");
}

TEST(Survey, WithoutAGoodFileHasNoStatistics) {
    const test::TemporaryFolder folder;
    test::write_file_bytes(folder.path() / "a" / "1.jpg", {});
    const FolderReport report = survey(scan_image_folder(folder.path()), 4);
    EXPECT_EQ(report.pixels, 0);
    EXPECT_EQ(report.smallest_side, 0);
    EXPECT_EQ(report.mean[0], 0.0);
}

TEST(Survey, AgreesWithPillowAndNumPyOnRealPhotographs) {
    const auto folder = real_data("ucmerced/test");
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no photographs at " << folder;
    const SampleIndex index = scan_image_folder(folder);
    EXPECT_EQ(index.classes.size(), 21U);
    EXPECT_EQ(index.samples.size(), 420U);
    const FolderReport report = survey(index, 2);
    EXPECT_TRUE(report.bad.empty());
    EXPECT_EQ(report.pixels, 27'505'826);
    EXPECT_EQ(report.smallest_side, 247);
    // numpy.asarray(Image.open(file).convert("RGB")) over all files, mean and deviation / 255.
    const std::array mean{0.4896093385637575, 0.49522169394578586, 0.4534412932636704};
    const std::array deviation{0.21576227692485242, 0.2011136333356864, 0.19804380635567065};
    for (std::size_t c = 0; c < 3; ++c) {
        EXPECT_NEAR(report.mean[c], mean[c], 1e-9);
        EXPECT_NEAR(report.standard_deviation[c], deviation[c], 1e-9);
    }
}

}  // namespace
}  // namespace hpcai::data
