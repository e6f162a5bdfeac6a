// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/annotated_pictures.hpp>

#include "data/read_at_one_rank.hpp"
#include "world.hpp"

/// Annotations that one rank reads for all.
namespace hpcai::data {
namespace {

using mpi_tests::world;

TEST(Annotations, AreReadByOneRankAndKnownToAll) {
    comm::Communicator& everyone = world().everyone;
    int reads = 0;
    const AnnotatedPictures set = read_at_one_rank(everyone, [&] {
        ++reads;
        AnnotatedPictures read;
        read.root = "a/b";
        read.classes = {"fox", "no UTF-8: \xFF"};
        read.pictures = {{"x.jpg", {40, 30}, {{0.1f, 2, 1.0f / 3, 30, 2}, {1, 2, 3, 4, 1}}},
                         {"y.jpg", {7, 5}, {}}};
        read.omitted = {1, 2, 3};
        return read;
    });
    EXPECT_EQ(reads, everyone.rank() == 0 ? 1 : 0);
    EXPECT_EQ(set.root, "a/b");
    EXPECT_EQ(set.classes, (std::vector<std::string>{"fox", "no UTF-8: \xFF"}));
    ASSERT_EQ(set.pictures.size(), 2U);
    EXPECT_EQ(set.pictures[0].path, "x.jpg");
    EXPECT_EQ(set.pictures[0].size.width, 40);
    EXPECT_EQ(set.pictures[0].size.height, 30);
    EXPECT_EQ(set.pictures[0].boxes,
              (std::vector<Box>{{0.1f, 2, 1.0f / 3, 30, 2}, {1, 2, 3, 4, 1}}));
    EXPECT_TRUE(set.pictures[1].boxes.empty());
    EXPECT_EQ(set.omitted, (OmittedObjects{1, 2, 3}));
}

TEST(Annotations, ThatOneRankRejectsAreRejectedByAll) {
    comm::Communicator& everyone = world().everyone;
    try {
        read_at_one_rank(
            everyone, []() -> AnnotatedPictures { throw Error(ExitCode::data, "a.xml: not XML"); });
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data);
        EXPECT_NE(std::string(error.what()).find("a.xml: not XML"), std::string::npos);
    }
}

}  // namespace
}  // namespace hpcai::data
