// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "child_process.hpp"
#include "data/annotated_folder.hpp"

namespace hpcai::cli {
namespace {

namespace fs = std::filesystem;
using data::test::slope_picture;
using data::test::voc_object;
using data::test::write_file_bytes;
using data::test::write_text;

/// One image has a box to clip and a box without area inside it; the other has a good box.
class CheckVoc : public ::testing::Test {
protected:
    CheckVoc() {
        folder_.add("a", 40, 30,
                    voc_object("fox", "2", "3", "60", "20") +
                        voc_object("fox", "41", "1", "50", "9") +
                        voc_object("hen", "5", "5", "9", "9"));
        folder_.add("b", 32, 32, voc_object("fox", "1", "1", "8", "8"));
        folder_.add("c", 32, 32, "");
    }
    Outcome check(std::vector<std::string> more = {}) const {
        more.insert(more.begin(), {"data", "check", folder_.path().string()});
        return run(more);
    }
    data::test::VocFolder folder_;
};

TEST_F(CheckVoc, CountsBoxesOfEachClassAndThoseClippedOrDropped) {
    const Outcome text = check();
    EXPECT_EQ(text.exit_code, 0) << text.error;
    EXPECT_EQ(text.out, folder_.path().string() +
                            " (train): 3 images, 1 without a box; 3 boxes of 2 classes, 1 of them "
                            "clipped; dropped: 1 without area, 0 crowds\n"
                            "boxes    fox: 2\nboxes    hen: 1\n");
    const auto json = nlohmann::json::parse(check({"--json"}).out);
    EXPECT_EQ(json["samples"], 3);
    EXPECT_EQ(json["split"], "train");
    EXPECT_EQ(json["classes"][0], (nlohmann::json{{"name", "fox"}, {"boxes", 2}}));
    EXPECT_EQ(json["clipped_boxes"], 1);
    EXPECT_EQ(json["dropped_boxes"], 1);
}

TEST_F(CheckVoc, NamesPicturesThatAreDamagedOrOfAnotherSize) {
    fs::resize_file(folder_.picture("a"), fs::file_size(folder_.picture("a")) / 2);
    write_file_bytes(folder_.picture("c"), data::encode_jpeg(slope_picture(8, 9).view(), 95));
    const Outcome outcome = check();
    EXPECT_EQ(outcome.exit_code, 4);
    EXPECT_NE(outcome.out.find("bad      " + folder_.picture("a").string() + ": "),
              std::string::npos)
        << outcome.out;
    EXPECT_NE(outcome.out.find("JPEGImages/c.jpg: 8 x 9 pixels, but annotated as 32 x 32"),
              std::string::npos)
        << outcome.out;
    EXPECT_NE(outcome.error.find("2 of 3 images are bad"), std::string::npos) << outcome.error;
}

TEST_F(CheckVoc, NamesTheAnnotationThatIsNotSound) {
    write_text(folder_.annotation("b"), "<annotation>");
    expect_refused(check(), 4, "b.xml: not XML");
    expect_refused(check({"--split", "val"}), 4, "val.txt");
}

TEST_F(CheckVoc, RejectsTheOptionsOfOtherKinds) {
    expect_refused(check({"--pictures", "x"}), 2,
                   "data check: --pictures: expected with a COCO file (*.json) only, got 'x'");
    expect_refused(run({"data", "check", "absent.json", "--split", "val"}), 2,
                   "data check: --split: expected with a Pascal VOC folder only, got 'val'");
}

TEST(CheckCoco, ReadsAnnotationsAndPictures) {
    const TemporaryFolder folder;
    write_file_bytes(folder / "pictures/x.jpg",
                     data::encode_jpeg(slope_picture(40, 30).view(), 95));
    write_text(folder / "instances.json",
               R"({"images": [{"id": 7, "file_name": "x.jpg", "width": 40, "height": 30}],
                   "categories": [{"id": 3, "name": "fox"}],
                   "annotations": [{"image_id": 7, "category_id": 3, "bbox": [30, 4, 20, 6]},
                     {"image_id": 7, "category_id": 3, "bbox": [1, 1, 5, 5], "iscrowd": 1}]})");
    const auto check = [&](std::vector<std::string> more) {
        more.insert(more.begin(), {"data", "check", "instances.json"});
        return run_in(folder.path(), more);
    };
    const Outcome text = check({"--pictures", "pictures"});
    EXPECT_EQ(text.exit_code, 0) << text.error;
    EXPECT_EQ(text.out,
              "instances.json: 1 images, 0 without a box; 1 boxes of 1 classes, 1 of them clipped; "
              "dropped: 0 without area, 1 crowds\nboxes    fox: 1\n");
    expect_refused(check({}), 4, "instances.json: image 7");
}

}  // namespace
}  // namespace hpcai::cli
