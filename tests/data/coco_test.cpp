// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "annotated_folder.hpp"

/// Reading COCO's annotation files.
namespace hpcai::data {
namespace {

using nlohmann::json;
using test::refusal;
using test::TemporaryFolder;
using test::write_text;
using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

const json kGood = json::parse(R"({
    "info": {"year": 2017}, "licenses": [],
    "images": [{"id": 7, "file_name": "b.jpg", "width": 40, "height": 30, "license": 1},
               {"id": 3, "file_name": "sub/a.jpg", "width": 20, "height": 10}],
    "annotations": [
        {"id": 1, "image_id": 3, "category_id": 90, "bbox": [1, 2.5, 3, 4], "iscrowd": 0, "area": 12},
        {"id": 2, "image_id": 3, "category_id": 5, "bbox": [-2, 0, 50, 5], "iscrowd": 0},
        {"id": 3, "image_id": 3, "category_id": 5, "bbox": [0, 0, 9, 9], "iscrowd": 1},
        {"id": 4, "image_id": 3, "category_id": 5, "bbox": [5, 5, 0, 3]}],
    "categories": [{"id": 90, "name": "ant"}, {"id": 5, "name": "fox"}, {"id": 6, "name": "owl"}]
})");

class Coco : public testing::Test {
protected:
    void SetUp() override {
        test::write_file_bytes(folder_.path() / "b.jpg", {1});
        test::write_file_bytes(folder_.path() / "sub/a.jpg", {1});
    }
    std::filesystem::path file() const { return folder_.path() / "instances.json"; }
    AnnotatedPictures read(const std::string& text, const ClassChoice& choice = {}) const {
        write_text(file(), text);
        return read_coco(file(), folder_.path(), choice);
    }
    /// Returns the error message about a document without the value at `at`, or with `value` there.
    std::string refusal_with(const char* at, const json& value) const {
        json document = kGood;
        document[json::json_pointer(at)] = value;
        const std::string said = refusal([&] { read(document.dump()); });
        EXPECT_THAT(said, AnyOf("accepted", HasSubstr(file().string())));
        return said;
    }

    TemporaryFolder folder_;
};

TEST_F(Coco, BoxesGoFromTheirCornerByTheirSize) {
    const AnnotatedPictures set = read(kGood.dump());
    EXPECT_THAT(set.classes, ElementsAre("ant", "fox"));
    ASSERT_EQ(set.pictures.size(), 2U);
    EXPECT_EQ(set.pictures[0].path, "b.jpg");
    EXPECT_TRUE(set.pictures[0].boxes.empty());
    EXPECT_THAT(set.pictures[1].boxes, ElementsAre(Box{1, 2.5f, 4, 6.5f, 1}, Box{0, 0, 20, 5, 2}));
    EXPECT_EQ(set.omitted, (OmittedObjects{1, 0, 1}));
}

TEST_F(Coco, ClassesThatAreNotChosenAreOmittedOrRejected) {
    const AnnotatedPictures set = read(kGood.dump(), {{"fox"}, true});
    EXPECT_EQ(set.omitted, (OmittedObjects{1, 1, 1}));
    EXPECT_THAT(refusal([&] {
                    read(kGood.dump(), {{"fox"}, false});
                }),
                AllOf(HasSubstr("image 3"), HasSubstr("class 'ant'")));
}

TEST_F(Coco, WrongValuesAreRejectedWithTheirPlace) {
    EXPECT_THAT(refusal_with("/images/1/id", 7), HasSubstr("images[1].id: expected a unique id"));
    EXPECT_THAT(refusal_with("/images/1/id", "x"), HasSubstr("images[1].id: expected an integer"));
    EXPECT_THAT(refusal_with("/images/1/width", nullptr), HasSubstr("expected a number"));
    EXPECT_THAT(refusal_with("/images/1/width", 20.5), HasSubstr("integers from 1"));
    EXPECT_THAT(refusal_with("/images/1/height", 0), HasSubstr("integers from 1"));
    EXPECT_THAT(refusal_with("/images/1/file_name", 3), HasSubstr("expected a string"));
    EXPECT_THAT(refusal_with("/images/1", 3), HasSubstr("images[1]: expected an object"));
    EXPECT_THAT(refusal_with("/images", 3), HasSubstr("images: expected a list"));
    EXPECT_THAT(refusal_with("/annotations/0/image_id", 8), HasSubstr("an existing id"));
    EXPECT_THAT(refusal_with("/annotations/0/category_id", 8), HasSubstr("an existing id"));
    EXPECT_THAT(refusal_with("/annotations/0/bbox", json::array({1, 2, 3})),
                HasSubstr("annotations[0].bbox: expected a list of x, y, width and height"));
    EXPECT_THAT(refusal_with("/annotations/0/bbox/2", "3"), HasSubstr("bbox[2]: expected a num"));
    EXPECT_THAT(refusal_with("/categories/0/name", "fox"), HasSubstr("a unique name"));
    EXPECT_THAT(refusal_with("/categories/0/id", 5), HasSubstr("a unique id"));
    EXPECT_THAT(refusal_with("/images", json::array()), HasSubstr("no image"));
    EXPECT_THAT(refusal_with("/annotations", json::array()), HasSubstr("no object"));
    json without = kGood;
    without.erase("categories");
    EXPECT_THAT(refusal([&] { read(without.dump()); }), HasSubstr("\"categories\""));
}

TEST_F(Coco, TextThatIsNoStrictJsonIsRejected) {
    const std::string good = kGood.dump();
    for (const std::string& text :
         {std::string(), good.substr(0, good.size() / 2), good + "x", std::string("[1]"),
          std::string("{\"images\": [], \"images\": []}"),
          std::string("{\"annotations\": [{\"bbox\": [NaN, 1, 2, 3]}]}"),
          std::string("{\"annotations\": [{\"bbox\": [1e999, 1, 2, 3]}]}"),
          std::string(100, '[')}) {
        EXPECT_THAT(refusal([&] { read(text); }), HasSubstr(file().string())) << text;
    }
}

TEST_F(Coco, PicturesThatAreMissingOrElsewhereAreRejected) {
    EXPECT_THAT(refusal_with("/images/0/file_name", "c.jpg"),
                AllOf(HasSubstr("image 7"), HasSubstr("c.jpg does not exist")));
    EXPECT_THAT(refusal_with("/images/0/file_name", "../b.jpg"), HasSubstr("outside its folder"));
    EXPECT_THAT(refusal_with("/images/0/file_name", "/etc/passwd"),
                HasSubstr("outside its folder"));
    EXPECT_THAT(refusal_with("/images/0/file_name", ""), HasSubstr("outside its folder"));
    EXPECT_THAT(refusal_with("/images/0/file_name", "sub"), HasSubstr("does not exist"));
}

}  // namespace
}  // namespace hpcai::data
