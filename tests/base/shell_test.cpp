// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/base/shell.hpp>

namespace hpcai {
namespace {

TEST(ShellWord, LeavesWhatNeedsNoQuotes) {
    EXPECT_EQ(shell_word("configs/a.yaml"), "configs/a.yaml");
    EXPECT_EQ(shell_word("bagging.M=2"), "bagging.M=2");
}

TEST(ShellWord, QuotesWhatAShellWouldTakeForItsOwn) {
    EXPECT_EQ(shell_word(""), "''");
    EXPECT_EQ(shell_word("a b"), "'a b'");
    EXPECT_EQ(shell_word("$(reboot)"), "'$(reboot)'");
    EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
    EXPECT_EQ(shell_word("a\nb"), "'a\nb'");
}

}  // namespace
}  // namespace hpcai
