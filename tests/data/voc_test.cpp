// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "annotated_folder.hpp"
#include "real_data.hpp"

/// Reading Pascal VOC's folders.
namespace hpcai::data {
namespace {

using test::refusal;
using test::voc_object;
using test::VocFolder;
using test::write_text;
using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

AnnotatedPictures read(const VocFolder& folder, const ClassChoice& choice = {}) {
    return read_voc(folder.path(), "train", choice);
}

std::string refusal_of(const VocFolder& folder, const ClassChoice& choice = {}) {
    return refusal([&] { read(folder, choice); });
}

/// Returns the error for a folder whose only annotation has this text.
std::string refusal_of(const std::string& annotation) {
    VocFolder folder;
    folder.add("a", 40, 30, "");
    write_text(folder.annotation("a"), annotation);
    const std::string said = refusal_of(folder);
    EXPECT_THAT(said, AnyOf("accepted", HasSubstr(folder.annotation("a").string())));
    return said;
}

TEST(Voc, BoxesCoverTheirLastPixelAndCountFromOne) {
    VocFolder folder;
    folder.add("a", 40, 30, voc_object("dog", "1", "2", "40", "30"));
    const AnnotatedPictures set = read(folder);
    ASSERT_EQ(set.pictures.size(), 1U);
    EXPECT_EQ(set.root, folder.path());
    EXPECT_EQ(set.pictures[0].path, "JPEGImages/a.jpg");
    EXPECT_EQ(set.pictures[0].size.width, 40);
    EXPECT_EQ(set.pictures[0].size.height, 30);
    EXPECT_THAT(set.pictures[0].boxes, ElementsAre(Box{0, 1, 40, 30, 1}));
    EXPECT_EQ(set.omitted, OmittedObjects{});
}

TEST(Voc, ClassesAreSortedAndPicturesInTheOrderOfTheList) {
    VocFolder folder;
    folder.add("b", 40, 30, voc_object("wolf", "1", "1", "9", "9"));
    folder.add("a", 40, 30, voc_object(" cat\n", "1.5", "1", "9", "9"));
    folder.add("c", 40, 30, "");  // without objects
    const AnnotatedPictures set = read(folder);
    EXPECT_THAT(set.classes, ElementsAre("cat", "wolf"));
    ASSERT_EQ(set.pictures.size(), 3U);
    EXPECT_EQ(set.pictures[0].boxes[0].category, 2);
    EXPECT_THAT(set.pictures[1].boxes, ElementsAre(Box{0.5f, 0, 9, 9, 1}));
    EXPECT_TRUE(set.pictures[2].boxes.empty());
}

TEST(Voc, ClassesThatAreNotChosenAreOmittedOrRejected) {
    VocFolder folder;
    folder.add("a", 40, 30,
               voc_object("RBC", "1", "1", "9", "9") + voc_object("WBC", "2", "2", "9", "9"));
    const AnnotatedPictures set = read(folder, {{"WBC", "Platelets"}, true});
    EXPECT_THAT(set.classes, ElementsAre("WBC", "Platelets"));
    EXPECT_THAT(set.pictures[0].boxes, ElementsAre(Box{1, 1, 9, 9, 1}));
    EXPECT_EQ(set.omitted, (OmittedObjects{0, 1, 0}));
    EXPECT_THAT(refusal_of(folder, {{"WBC"}, false}),
                AllOf(HasSubstr(folder.annotation("a").string()), HasSubstr("class 'RBC'")));
}

TEST(Voc, BoxesAreClippedAndThoseWithoutAreaCounted) {
    VocFolder folder;
    folder.add("a", 40, 30,
               voc_object("a", "-5", "-1e300", "50", "10") + voc_object("a", "41", "1", "60", "9") +
                   voc_object("a", "7", "7", "7", "7") + voc_object("a", "9", "1", "5", "9"));
    const AnnotatedPictures set = read(folder);
    EXPECT_THAT(set.pictures[0].boxes, ElementsAre(Box{0, 0, 40, 10, 1}));
    EXPECT_EQ(set.omitted, (OmittedObjects{3, 0, 0}));
}

TEST(Voc, NumbersThatAreNoneAreRejectedWithTheirTag) {
    for (const char* number : {"nan", "inf", "-inf", "1e999", "", "x", "1x", "1 2", "0x10"}) {
        EXPECT_THAT(refusal_of(test::voc_text(40, 30, voc_object("a", "1", number, "5", "9"))),
                    HasSubstr("<ymin> in <bndbox>: expected a number"))
            << number;
    }
}

TEST(Voc, BrokenAnnotationsAreRejected) {
    const std::string good = test::voc_text(40, 30, voc_object("a", "1", "1", "5", "9"));
    EXPECT_EQ(refusal_of(good), "accepted");
    EXPECT_THAT(refusal_of(""), HasSubstr("not XML"));
    EXPECT_THAT(refusal_of("<annotation>"), HasSubstr("not XML"));
    for (std::size_t bytes = 1; bytes < good.size() - 2; bytes += 7) {
        EXPECT_NE(refusal_of(good.substr(0, bytes)), "accepted") << bytes;
    }
    EXPECT_THAT(refusal_of("<html></html>"), HasSubstr("no <annotation>"));
    EXPECT_THAT(refusal_of("<annotation></annotation>"), HasSubstr("expected one <size>"));
    EXPECT_THAT(refusal_of("<annotation><size/><size/></annotation>"), HasSubstr("one <size>"));
    EXPECT_THAT(refusal_of(test::voc_text(40, 30, "<object/>")), HasSubstr("one <name>"));
    EXPECT_THAT(refusal_of(test::voc_text(40, 30, "<object><name> </name></object>")),
                HasSubstr("has no name"));
    EXPECT_THAT(refusal_of(test::voc_text(40, 30, "<object><name>a</name></object>")),
                HasSubstr("one <bndbox>"));
    for (const auto& [width, height] : {std::pair{0, 30}, {40, -1}, {40, 1'000'000'000}}) {
        EXPECT_THAT(refusal_of(test::voc_text(width, height, "")), HasSubstr("integers from 1"));
    }
    EXPECT_THAT(refusal_of("<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]>" +
                           test::voc_text(40, 30, voc_object("&b;", "1", "1", "5", "9"))),
                testing::Not(HasSubstr("root:")));
}

TEST(Voc, MissingFilesAreNamed) {
    VocFolder folder;
    folder.add("a", 40, 30, voc_object("a", "1", "1", "5", "9"));
    EXPECT_THAT(refusal([&] { read_voc(folder.path(), "val", {}); }),
                HasSubstr(folder.list("val").string()));
    EXPECT_THAT(refusal([&] { read_voc("/nowhere", "train", {}); }), HasSubstr("/nowhere"));
    std::filesystem::remove(folder.picture("a"));
    EXPECT_THAT(refusal_of(folder), AllOf(HasSubstr(folder.annotation("a").string()),
                                          HasSubstr(folder.picture("a").string())));
    std::filesystem::remove(folder.annotation("a"));
    EXPECT_THAT(refusal_of(folder), HasSubstr(folder.annotation("a").string()));
}

TEST(Voc, ListsThatLeaveTheFolderRepeatOrAreEmptyAreRejected) {
    VocFolder folder;
    folder.add("a", 40, 30, voc_object("a", "1", "1", "5", "9"));
    const auto with_list = [&](const std::string& text) {
        write_text(folder.list(), text);
        return refusal_of(folder);
    };
    EXPECT_EQ(with_list("\r\n a \r\n\n"), "accepted");
    EXPECT_THAT(with_list("a\na\n"), HasSubstr("'a' occurs twice"));
    EXPECT_THAT(with_list("../../etc/passwd\n"), HasSubstr("outside the folder"));
    EXPECT_THAT(with_list("/etc/passwd\n"), HasSubstr("outside the folder"));
    EXPECT_THAT(with_list("\n \n"), HasSubstr("the list has no image"));
    EXPECT_THAT(refusal([&] { read_voc(folder.path(), "../x", {}); }), HasSubstr("outside"));
}

TEST(Voc, ASetWithoutAnyObjectIsRejected) {
    VocFolder folder;
    folder.add("a", 40, 30, "");
    EXPECT_THAT(refusal_of(folder), HasSubstr("no object in any image"));
}

/// WBC and Platelets of BCCD, whose third class is under-annotated.
TEST(Bccd, HasThePicturesAndObjectsOfItsAnnotations) {
    const std::filesystem::path root = real_data("bccd/BCCD");
    if (!std::filesystem::exists(root)) GTEST_SKIP() << "no " << root.string();
    const ClassChoice choice{{"WBC", "Platelets"}, true};
    std::size_t pictures = 0, boxes[3] = {};
    OmittedObjects all_omitted;
    for (const char* split : {"train", "val", "test"}) {
        const AnnotatedPictures set = read_voc(root, split, choice);
        pictures += set.pictures.size();
        all_omitted.other_classes += set.omitted.other_classes;
        all_omitted.without_area += set.omitted.without_area;
        for (const AnnotatedPicture& picture : set.pictures) {
            EXPECT_EQ(picture.size.width, 640);
            for (const Box& box : picture.boxes) ++boxes[box.category];
        }
    }
    EXPECT_EQ(pictures, 364U);
    EXPECT_EQ(boxes[1], 372U);
    EXPECT_EQ(boxes[2], 361U);
    EXPECT_EQ(all_omitted.other_classes, 4155);
    const AnnotatedPictures all = read_voc(root, "trainval", {});
    EXPECT_THAT(all.classes, ElementsAre("Platelets", "RBC", "WBC"));
}

}  // namespace
}  // namespace hpcai::data
