// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/generate.hpp>
#include <hpcai/data/photograph.hpp>
#include <hpcai/data/sample_index.hpp>

#include "fixtures.hpp"

namespace hpcai::data {
namespace {

namespace fs = std::filesystem;

std::array<double, 3> mean_color(const Image& image) {
    std::array<double, 3> sum{};
    for (std::size_t i = 0; i < image.pixels.size(); ++i) sum[i % 3] += image.pixels[i];
    for (double& value : sum) value /= static_cast<double>(image.pixels.size() / 3);
    return sum;
}

TEST(Photograph, IsAFunctionOfItsNumberAlone) {
    const PhotographSet ten{10, 40, 1};
    const PhotographSet more{20, 40, 1};
    const Image one = make_photograph(ten, Split::training, 3, 5);
    EXPECT_EQ(one.pixels, make_photograph(more, Split::training, 3, 5).pixels);
    EXPECT_NE(one.pixels, make_photograph(ten, Split::training, 3, 6).pixels);
    EXPECT_NE(one.pixels, make_photograph(ten, Split::validation, 3, 5).pixels);
    EXPECT_NE(one.pixels, make_photograph({10, 40, 2}, Split::training, 3, 5).pixels);
    EXPECT_EQ(std::max(one.width, one.height), 40);
    EXPECT_GE(std::min(one.width, one.height), 30);
}

TEST(Photograph, ClassNamesSortLikeTheirNumbersAndLooksDiffer) {
    std::set<std::string> looks;
    std::string last;
    for (int label = 0; label < kMaxPhotographClasses; ++label) {
        const std::string name = photograph_class_name(label);
        EXPECT_LT(last, name);
        last = name;
        looks.insert(name.substr(5));
    }
    EXPECT_EQ(looks.size(), 64U);
}

TEST(Photograph, MeanColourDoesNotRevealTheClass) {
    constexpr int kClasses = 5, kPerClass = 40;
    const PhotographSet set{kClasses, 32, 1};
    std::array<std::array<double, 3>, kClasses> centers{};
    for (int label = 0; label < kClasses; ++label) {
        for (std::uint32_t i = 0; i < kPerClass; ++i) {
            const auto color = mean_color(make_photograph(set, Split::training, label, i));
            for (std::size_t c = 0; c < 3; ++c) {
                centers[static_cast<std::size_t>(label)][c] += color[c] / kPerClass;
            }
        }
    }
    int right = 0;
    for (int label = 0; label < kClasses; ++label) {
        for (std::uint32_t i = 0; i < kPerClass; ++i) {
            const auto color = mean_color(make_photograph(set, Split::validation, label, i));
            double best = std::numeric_limits<double>::max();
            int guess = -1;
            for (int other = 0; other < kClasses; ++other) {
                double distance = 0;
                for (std::size_t c = 0; c < 3; ++c) {
                    distance += std::pow(color[c] - centers[static_cast<std::size_t>(other)][c], 2);
                }
                if (distance < best) guess = other;
                best = std::min(best, distance);
            }
            right += guess == label;
        }
    }
    EXPECT_LT(right, kClasses * kPerClass * 2 / 5);  // chance is one fifth
}

class Generate : public testing::Test {
protected:
    Generate() { options_.directory = folder_.path() / "set"; }

    static std::map<std::string, std::vector<std::uint8_t>> files_of(const fs::path& root) {
        std::map<std::string, std::vector<std::uint8_t>> files;
        for (const auto& entry : fs::recursive_directory_iterator(root)) {
            if (!entry.is_regular_file()) continue;
            files[entry.path().lexically_relative(root).string()] =
                test::read_file_bytes(entry.path());
        }
        return files;
    }
    void expect_refused() {
        try {
            generate_photographs(options_, 1);
            ADD_FAILURE() << "no error";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
        }
        for (const auto& entry : fs::directory_iterator(folder_.path())) {
            EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos);
        }
    }

    test::TemporaryFolder folder_;
    GenerateOptions options_{.directory = {},
                             .classes = 3,
                             .training_per_class = 4,
                             .validation_per_class = 2,
                             .size = 32};
};

TEST_F(Generate, WritesTheSameFilesForEveryThreadCount) {
    EXPECT_TRUE(generate_photographs(options_, 1));
    const auto files = files_of(options_.directory);
    EXPECT_EQ(files.size(), 3U * 4 + 3 * 2 + 1);
    for (const int threads : {2, 4}) {
        options_.directory = folder_.path() / ("again" + std::to_string(threads));
        generate_photographs(options_, threads);
        EXPECT_TRUE(files_of(options_.directory) == files);
    }
    const SampleIndex training = scan_image_folder(options_.directory / "train");
    const SampleIndex validation = scan_image_folder(options_.directory / "val");
    EXPECT_NO_THROW(require_classes(training, 3));
    EXPECT_NO_THROW(require_same_classes(training, validation));
    EXPECT_EQ(training.classes[1], photograph_class_name(1));
}

TEST_F(Generate, LeavesAnIdenticalSetAsItIs) {
    EXPECT_TRUE(generate_photographs(options_, 2));
    EXPECT_FALSE(generate_photographs(options_, 2));
    options_.directory /= "";  // "set/"
    EXPECT_FALSE(generate_photographs(options_, 2));
}

TEST_F(Generate, FillsAnEmptyDirectoryAndRejectsAnyOther) {
    fs::create_directory(options_.directory);
    EXPECT_TRUE(generate_photographs(options_, 2));
    options_.seed = 2;
    expect_refused();
    options_.seed = 1;
    fs::remove(options_.directory / "val" / photograph_class_name(2) / "000001.jpg");
    expect_refused();
    options_.directory = folder_.path() / "file";
    test::write_file_bytes(options_.directory, {1});
    expect_refused();
    options_.directory = folder_.path() / "file" / "below";
    expect_refused();
}

TEST_F(Generate, RejectsAnEmptyDirectory) {
    options_.directory = "";
    expect_refused();
}

}  // namespace
}  // namespace hpcai::data
