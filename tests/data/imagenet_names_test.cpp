// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <hpcai/data/sample_index.hpp>

namespace hpcai::data {
namespace {

using Texts = std::vector<std::string>;

SampleIndex index_of(const Texts& classes, const std::vector<Sample>& samples) {
    return {"", classes, samples, {}};
}

const SampleIndex kTraining =
    index_of({"n01440764", "n01443537"},
             {{"n01440764/n01440764_10026.JPEG", 0}, {"n01443537/n01443537_2.jpg", 1}});
const SampleIndex kTest = index_of(
    {"n01440764", "n01443537"},
    {{"n01440764/ILSVRC2012_val_00000293.JPEG", 0}, {"n01443537/ILSVRC2012_val_00050000.JPEG", 1}});

TEST(ImageNetNames, AreNoReasonToDisqualify) {
    EXPECT_EQ(disqualifications_of_names(kTraining, kTest), Texts{});
}

TEST(ImageNetNames, AreNotThoseOfOtherPictures) {
    const SampleIndex made = index_of({"class_000"}, {{"class_000/000.jpg", 0}});
    EXPECT_EQ(disqualifications_of_names(made, made),
              (Texts{"classes not named as in ImageNet-1k (n01440764): 1, the first 'class_000'",
                     "training files not named as in ImageNet-1k (n01440764_10026.JPEG): 1, "
                     "the first 'class_000/000.jpg'",
                     "test files not named as in ImageNet-1k (ILSVRC2012_val_00000001.JPEG, "
                     "each once): 1, the first 'class_000/000.jpg'"}));
}

TEST(ImageNetNames, OfTrainingHaveTheirClass) {
    for (const char* name :
         {"n01440764/n01443537_2.JPEG", "n01440764/n01440764_.JPEG", "n01440764/n01440764.JPEG",
          "n01440764/n01440764_2a.JPEG", "n01440764/.JPEG"}) {
        const SampleIndex strange = index_of(kTraining.classes, {{name, 0}});
        EXPECT_EQ(disqualifications_of_names(strange, kTest).size(), 1U) << name;
    }
}

TEST(ImageNetNames, OfTestHaveEachNumberOnce) {
    for (const char* name :
         {"n01440764/ILSVRC2012_val_00000000.JPEG", "n01440764/ILSVRC2012_val_00050001.JPEG",
          "n01440764/ILSVRC2012_val_0000001.JPEG", "n01440764/ILSVRC2012_val_0000001x.JPEG",
          "n01443537/ILSVRC2012_val_00000293.jpg"}) {
        SampleIndex strange = kTest;
        strange.samples.push_back({name, 0});
        const Texts disqualifications = disqualifications_of_names(kTraining, strange);
        ASSERT_EQ(disqualifications.size(), 1U) << name;
        EXPECT_NE(disqualifications.front().find("test files not named"), std::string::npos)
            << name;
    }
}

}  // namespace
}  // namespace hpcai::data
