// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <hpcai/evaluation/coco_json.hpp>
#include <hpcai/storage/file.hpp>

#include "random_detections.hpp"
#include "storage/temporary_folder.hpp"

namespace hpcai::evaluation {
namespace {

using storage::error_of;
using storage::TemporaryFolder;

/// Two images and three categories.
Annotations annotations() {
    return {{{4, "a.jpg", 640, 480}, {7, "caf\xc3\xa9 \"b\".jpg", 0, 0}},
            {{1, "tropical depression"}, {2, ""}, {9, "river\n"}},
            {2, 3, {{1, 3, {0.1, 2, 3.5, 4}}, {0, 1, {1e-9, 0, 1.0 / 3, 0}, true}}}};
}

void expect_equal(const Annotations& a, const Annotations& b) {
    EXPECT_EQ(a.images, b.images);
    EXPECT_EQ(a.categories, b.categories);
    EXPECT_EQ(a.truth.images, b.truth.images);
    EXPECT_EQ(a.truth.categories, b.truth.categories);
    EXPECT_EQ(a.truth.boxes, b.truth.boxes);
}

TEST(CocoAnnotations, ReadBackExactly) {
    expect_equal(parse_coco_annotations(coco_annotations(annotations()), "a"), annotations());
    expect_equal(parse_coco_annotations(coco_annotations({}), "a"), {});
}

TEST(CocoAnnotations, HaveWhatPycocotoolsNeeds) {
    EXPECT_EQ(coco_annotations(annotations()),
              "{\"images\":[\n"
              "{\"id\":4,\"file_name\":\"a.jpg\",\"width\":640,\"height\":480},\n"
              "{\"id\":7,\"file_name\":\"caf\xc3\xa9 \\\"b\\\".jpg\",\"width\":0,\"height\":0}],\n"
              "\"categories\":[\n"
              "{\"id\":1,\"name\":\"tropical depression\"},\n"
              "{\"id\":2,\"name\":\"\"},\n"
              "{\"id\":9,\"name\":\"river\\n\"}],\n"
              "\"annotations\":[\n"
              "{\"id\":1,\"image_id\":7,\"category_id\":9,\"bbox\":[0.1,2,3.5,4],\"area\":14,"
              "\"iscrowd\":0},\n"
              "{\"id\":2,\"image_id\":4,\"category_id\":1,\"bbox\":[1e-09,0,0.3333333333333333,0],"
              "\"area\":0,\"iscrowd\":1}]}\n");
}

TEST(CocoAnnotations, AreIndexedInTheOrderOfTheirIds) {
    const Annotations got = parse_coco_annotations(
        R"({"info":{},"images":[{"id":20},{"id":-3}],"categories":[{"id":5},{"id":0}],
            "annotations":[{"image_id":20,"category_id":0,"bbox":[1,2,3,4]}]})",
        "a");
    EXPECT_EQ(got.images[0].id, -3);
    EXPECT_EQ(got.truth.boxes, (std::vector<LabelledBox>{{1, 1, {1, 2, 3, 4}}}));
}

TEST(CocoDetections, MayBeMoreThanTenMillionValues) {
    std::string text = R"([{"image_id":4,"category_id":1,"bbox":[1,2,3,4],"score":1,"more":[0)";
    for (int value = 0; value < 10'000'000; ++value) text += ",0";
    EXPECT_EQ(parse_coco_detections(text + "]}]", "d", annotations()).size(), 1U);
}

TEST(CocoDetections, ReadBackExactlyFromCornersInFp32) {
    CounterStream stream(1, RandomPurpose::test);
    const auto pixel = [&] { return static_cast<float>(stream.uniform() * 1152); };
    std::vector<Detection> detections;
    for (int index = 0; index < 1000; ++index) {
        const float x1 = pixel(), x2 = x1 + pixel(), y1 = pixel() / 1e6F, y2 = y1 + pixel();
        detections.push_back({index / 500, 1 + index % 3, static_cast<float>(stream.uniform()),
                              box_from_corners(x1, y1, x2, y2)});
        EXPECT_EQ(static_cast<float>(detections.back().box.x + detections.back().box.width), x2);
        EXPECT_EQ(static_cast<float>(detections.back().box.y + detections.back().box.height), y2);
    }
    const std::string text = coco_detections(annotations(), detections);
    EXPECT_EQ(parse_coco_detections(text, "d", annotations()), detections);
    EXPECT_EQ(coco_detections(annotations(), {}), "[]\n");
    EXPECT_TRUE(parse_coco_detections("[]", "d", annotations()).empty());
}

TEST(CocoDetections, ComeByImageElseInTheOrderOfTheText) {
    const std::string text =
        R"([{"image_id":7,"category_id":2,"bbox":[1,2,3,4],"score":0.5},
            {"image_id":4,"category_id":9,"bbox":[5,6,7,8],"score":0.25},
            {"image_id":7,"category_id":1,"bbox":[1,2,3,4],"score":0.75,"segmentation":[]}])";
    EXPECT_EQ(
        parse_coco_detections(text, "d", annotations()),
        (std::vector<Detection>{
            {0, 3, 0.25, {5, 6, 7, 8}}, {1, 2, 0.5, {1, 2, 3, 4}}, {1, 1, 0.75, {1, 2, 3, 4}}}));
}

TEST(CocoDetections, OmitWhatIsNotANumber) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::vector<Detection> unsound{{0, 1, nan, {1, 2, 3, 4}}, {0, 1, 0.5, {1, 2, -3, 4}}};
    EXPECT_EQ(coco_detections(annotations(), unsound), "[]\n");
}

TEST(CocoFiles, AreReadFromTheDisk) {
    const TemporaryFolder folder;
    storage::write_file_durably(folder / "a.json", coco_annotations(annotations()));
    const Annotations read = read_coco_annotations(folder / "a.json");
    expect_equal(read, annotations());
    storage::write_file_durably(folder / "d.json", "{}");
    const std::string message =
        error_of(ExitCode::data, [&] { read_coco_detections(folder / "d.json", read); });
    EXPECT_EQ(message,
              "'" + (folder / "d.json").string() + "': top level: expected a list, got {}");
}

struct Hostile {
    std::string text;
    std::string message;
    friend std::ostream& operator<<(std::ostream& out, const Hostile& hostile) {
        return out << hostile.text;
    }
};

class HostileDetections : public testing::TestWithParam<Hostile> {};

TEST_P(HostileDetections, AreRejectedWithTheirPlace) {
    const std::string message = error_of(
        ExitCode::data, [&] { parse_coco_detections(GetParam().text, "d.json", annotations()); });
    EXPECT_EQ(message.find("'d.json'"), 0U) << message;
    EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
}

/// One detection with the texts `bbox` and `score`.
std::string detection(const std::string& bbox, const std::string& score) {
    return R"([{"image_id":4,"category_id":1,"bbox":)" + bbox + R"(,"score":)" + score + "}]";
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileDetections,
    testing::Values(
        Hostile{"", "not valid JSON"}, Hostile{"[", "not valid JSON"}, Hostile{"{}", "a list"},
        Hostile{"[3]", "[0]: expected an object, got 3"},
        Hostile{R"([{"image_id":4}])", "[0].category_id: expected a value"},
        Hostile{R"([{"image_id":5,"category_id":1,"bbox":[1,2,3,4],"score":1}])",
                "[0].image_id: expected the id of an image of the annotations, got 5"},
        Hostile{R"([{"image_id":4,"category_id":3,"bbox":[1,2,3,4],"score":1}])",
                "[0].category_id: expected the id of a category of the annotations, got 3"},
        Hostile{R"([{"image_id":4.5,"category_id":1,"bbox":[1,2,3,4],"score":1}])",
                "[0].image_id: expected an integer"},
        Hostile{R"([{"image_id":18446744073709551615,"category_id":1}])", "[0].image_id"},
        Hostile{R"([{"image_id":4,"image_id":4}])", "'image_id' twice"},
        Hostile{detection("[1,2,3,4]", "NaN"), "not valid JSON"},
        Hostile{detection("[1,2,3,4]", "null"), "[0].score: expected a number from"},
        Hostile{detection("[1,2,3,4]", "\"0.5\""), "[0].score: expected a number from"},
        Hostile{detection("[1,2,3,4]", "1e999"), "not valid JSON"},
        Hostile{detection("[1,2,3,4]", "1e300"), "[0].score: expected a number from"},
        Hostile{detection("[1,2,3]", "1"), "[0].bbox: expected a list of x, y, width and height"},
        Hostile{detection("{}", "1"), "[0].bbox: expected a list"},
        Hostile{detection("[1,2,-3,4]", "1"), "[0].bbox[2]: expected a number from 0"},
        Hostile{detection("[1,2,3,-0.5]", "1"), "[0].bbox[3]: expected a number from 0"},
        Hostile{detection("[1,true,3,4]", "1"), "[0].bbox[1]: expected a number"},
        Hostile{detection("[-1e10,2,3,4]", "1"), "[0].bbox[0]: expected a number"},
        Hostile{std::string(100, '['), "deeper than 32"}));

class HostileAnnotations : public testing::TestWithParam<Hostile> {};

TEST_P(HostileAnnotations, AreRejectedWithTheirPlace) {
    const std::string message =
        error_of(ExitCode::data, [&] { parse_coco_annotations(GetParam().text, "a.json"); });
    EXPECT_EQ(message.find("'a.json'"), 0U) << message;
    EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileAnnotations,
    testing::Values(
        Hostile{"[]", "top level: expected an object"},
        Hostile{R"({"images":[]})", "categories: expected a value"},
        Hostile{R"({"images":{},"categories":[],"annotations":[]})", "images: expected a list"},
        Hostile{R"({"images":[{"id":1},{"id":1}],"categories":[],"annotations":[]})",
                "images: expected unique ids, got 1"},
        Hostile{R"({"images":[],"categories":[{"id":2},{"id":2}],"annotations":[]})",
                "categories: expected unique ids, got 2"},
        Hostile{R"({"images":[{"id":1,"width":-1}],"categories":[],"annotations":[]})",
                "images[0].width: expected an integer from 0"},
        Hostile{R"({"images":[{"id":1,"file_name":1}],"categories":[],"annotations":[]})",
                "images[0].file_name: expected a string, got 1"},
        Hostile{R"({"images":[{"id":1}],"categories":[{"id":1}],
                    "annotations":[{"image_id":2,"category_id":1,"bbox":[0,0,1,1]}]})",
                "annotations[0].image_id: expected the id of an image"},
        Hostile{R"({"images":[{"id":1}],"categories":[{"id":1}],
                    "annotations":[{"image_id":1,"category_id":1,"bbox":[0,0,1,-1]}]})",
                "annotations[0].bbox[3]: expected a number from 0"},
        Hostile{R"({"images":[{"id":1}],"categories":[{"id":1}],
                    "annotations":[{"image_id":1,"category_id":1,"bbox":[0,0,1,1],
                                    "iscrowd":-1}]})",
                "annotations[0].iscrowd: expected an integer from 0"}));

TEST(CocoJson, ReadsDamagedFilesOrRejectsThemAsData) {
    const std::vector<Detection> detections = random_detections({.images = 2}, 1);
    const std::string texts[] = {coco_annotations(annotations()),
                                 coco_detections(annotations(), detections)};
    storage::Dice dice(1);
    int rejected = 0;
    for (int round = 0; round < 3000; ++round) {
        const auto bytes = storage::bytes_of(texts[round % 2]);
        const auto damaged = storage::mutated({bytes.begin(), bytes.end()}, dice);
        const std::string_view text = storage::text_of(damaged);
        try {
            if (round % 2 == 0) {
                const Annotations read = parse_coco_annotations(text, "a");
                expect_equal(parse_coco_annotations(coco_annotations(read), "b"), read);
            } else {
                const auto read = parse_coco_detections(text, "d", annotations());
                const std::string again = coco_detections(annotations(), read);
                EXPECT_EQ(parse_coco_detections(again, "e", annotations()), read);
            }
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::data) << error.what();
            ++rejected;
        }
    }
    EXPECT_GT(rejected, 1000);
}

TEST(CocoJson, WritesNothingThatDoesNotFit) {
    Annotations wrong = annotations();
    wrong.truth.images = 3;
    EXPECT_THROW(coco_annotations(wrong), Error);
    EXPECT_THROW(coco_detections(annotations(), std::vector<Detection>{{2, 1, 0.5, {}}}), Error);
    EXPECT_THROW(coco_detections(annotations(), std::vector<Detection>{{0, 4, 0.5, {}}}), Error);
    EXPECT_THROW(coco_detections(annotations(), std::vector<Detection>{{0, 0, 0.5, {}}}), Error);
}

}  // namespace
}  // namespace hpcai::evaluation
