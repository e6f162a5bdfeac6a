// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/sample_index.hpp>
#include <hpcai/data/sample_set.hpp>

#include "annotated_folder.hpp"

/// workload.classes `auto`.
namespace hpcai::data {
namespace {

/// Loads the defaults with `auto` and these settings.
config::Config load_with(std::vector<std::string> settings) {
    settings.emplace_back("workload.classes=auto");
    return load_config({{}, settings});
}

std::vector<std::string> of_folder(const std::filesystem::path& path) {
    return {"data.kind=image_folder", "data.path=" + path.string(), "data.validation_path=."};
}

void expect_refused(const std::vector<std::string>& settings, ExitCode code,
                    const std::string& message) {
    try {
        load_with(settings);
        ADD_FAILURE() << "accepted, expected " << message;
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code);
        EXPECT_EQ(error.what(), message);
    }
}

TEST(LoadConfig, CountsTheClassesOfAFolderAndOfItsIndex) {
    const test::TemporaryFolder folder;
    for (const char* path : {"train/a/1.jpg", "train/b/1.jpg", "train/c/1.jpg", "train/.d/1.jpg"}) {
        test::write_text(folder.path() / path, "x");
    }
    const auto training = folder.path() / "train", index = folder.path() / "train.jsonl";
    EXPECT_EQ(load_with(of_folder(training)).workload.classes, 3);
    write_index(scan_image_folder(training), index);
    EXPECT_EQ(load_with(of_folder(index)).workload.classes, 3);
}

TEST(LoadConfig, CountsTheClassesOfAnnotatedPicturesUnlessTheyAreNamed) {
    test::VocFolder folder;
    folder.add(
        "1", 60, 40,
        test::voc_object("fox", "1", "1", "9", "9") + test::voc_object("owl", "1", "1", "9", "9"));
    std::vector<std::string> settings{"workload.kind=object_detection",
                                      "workload.model=faster_rcnn_r50_fpn",
                                      "bagging.aggregation=wbf",
                                      "bagging.out_of_bag=false",
                                      "data.random_area_minimum=0.08",
                                      "data.kind=voc",
                                      "data.path=" + folder.path().string()};
    EXPECT_EQ(load_with(settings).workload.classes, 2);
    settings.emplace_back("data.class_names=[fox]");
    EXPECT_EQ(load_with(settings).workload.classes, 1);
}

TEST(LoadConfig, NamesTheKeyOfAMissingFolderAndTheFolderOfASingleClass) {
    const test::TemporaryFolder folder;
    const auto training = (folder.path() / "train").string();
    expect_refused(
        of_folder(training), ExitCode::data,
        "--set data.path=" + training + ": data.path: '" + training + "' does not exist");
    test::write_text(folder.path() / "train/a/1.jpg", "x");
    expect_refused(of_folder(training), ExitCode::data,
                   training + ": expected two or more classes, got one");
}

TEST(LoadConfig, NeedsANumberForSyntheticPictures) {
    expect_refused({}, ExitCode::usage,
                   "--set workload.classes=auto: workload.classes: expected an integer, as "
                   "data.kind is synthetic, got 'auto'");
}

}  // namespace
}  // namespace hpcai::data
