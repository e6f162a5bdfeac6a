// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/config/nearest.hpp>

namespace hpcai::config {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsSubstitutionsAndSwaps) {
    EXPECT_EQ(edit_distance("", ""), 0);
    EXPECT_EQ(edit_distance("", "abc"), 3);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
    EXPECT_EQ(edit_distance("sdg", "sgd"), 1);
    EXPECT_EQ(edit_distance("ca", "abc"), 3);
    EXPECT_EQ(edit_distance("P_Degree", "p_degree"), 0);
}

TEST(Nearest, FindsANearNameAndNothingWhereAllAreFar) {
    const std::vector<std::string> names = {"batch_size", "momentum", "nesterov"};
    EXPECT_EQ(nearest("momentom", names), "momentum");
    EXPECT_EQ(nearest("bacth_sise", names), "batch_size");
    EXPECT_EQ(nearest("epochs", names), "");
    EXPECT_EQ(nearest(std::string(65, 'm'), {std::string(64, 'm')}), "");
    EXPECT_EQ(nearest("x", {}), "");
    EXPECT_EQ(did_you_mean("nestrov", names), "; did you mean 'nesterov'?");
    EXPECT_EQ(did_you_mean("q", names), "");
}

TEST(Nearest, FindsANameByItsFirstLetters) {
    const std::vector<std::string> names = {"mode", "momentum", "nesterov"};
    EXPECT_EQ(did_you_mean("mom", names), "; did you mean 'momentum'?");
    EXPECT_EQ(did_you_mean("Mom", names), "; did you mean 'momentum'?");
    EXPECT_EQ(did_you_mean("mod", names), "; did you mean 'mode'?") << "which is near";
    EXPECT_EQ(did_you_mean("ne", names), "");
    EXPECT_EQ(did_you_mean("entum", names), "");
}

TEST(Nearest, FindsSynonymsThatLookLikeAnotherName) {
    const std::vector<std::string> kinds = {"auto", "cpu", "cuda"};
    EXPECT_EQ(did_you_mean("gpu", kinds), "; did you mean 'cuda'?");
    EXPECT_EQ(did_you_mean("GPU", kinds), "; did you mean 'cuda'?");
    EXPECT_EQ(did_you_mean("cpus", kinds), "; did you mean 'cpu'?");
    EXPECT_EQ(did_you_mean("half", {"fp32", "fp16"}), "; did you mean 'fp16'?");
    EXPECT_EQ(did_you_mean("gpu", {"gru", "lstm"}), "; did you mean 'gru'?")
        << "where there is no cuda";
}

}  // namespace
}  // namespace hpcai::config
