// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/base/text.hpp>

namespace hpcai {
namespace {

TEST(ShellWord, KeepsTextWithoutSpecialCharacters) {
    EXPECT_EQ(shell_quote("configs/a.yaml"), "configs/a.yaml");
    EXPECT_EQ(shell_quote("bagging.M=2"), "bagging.M=2");
}

TEST(ShellWord, QuotesSpecialCharactersOfTheShell) {
    EXPECT_EQ(shell_quote(""), "''");
    EXPECT_EQ(shell_quote("a b"), "'a b'");
    EXPECT_EQ(shell_quote("$(reboot)"), "'$(reboot)'");
    EXPECT_EQ(shell_quote("it's"), "'it'\\''s'");
    EXPECT_EQ(shell_quote("a\nb"), "'a\nb'");
}

TEST(Utf8, CharactersHaveOneToFourBytes) {
    EXPECT_EQ(utf8_character_bytes("ab"), 1U);
    EXPECT_EQ(utf8_character_bytes("\xC2\x80"), 2U);
    EXPECT_EQ(utf8_character_bytes("\xE0\xA0\x80z"), 3U);
    EXPECT_EQ(utf8_character_bytes("\xED\x9F\xBF"), 3U);
    EXPECT_EQ(utf8_character_bytes("\xF4\x8F\xBF\xBF"), 4U);
}

TEST(Utf8, OtherBytesBeginNoCharacter) {
    EXPECT_EQ(utf8_character_bytes(""), 0U);
    EXPECT_EQ(utf8_character_bytes("\x80"), 0U) << "the second byte of a character";
    EXPECT_EQ(utf8_character_bytes("\xC3"), 0U) << "the text ends";
    EXPECT_EQ(utf8_character_bytes("\xC3z"), 0U);
    EXPECT_EQ(utf8_character_bytes("\xC1\xBF"), 0U) << "one byte would do";
    EXPECT_EQ(utf8_character_bytes("\xE0\x9F\xBF"), 0U) << "two bytes would do";
    EXPECT_EQ(utf8_character_bytes("\xF0\x8F\xBF\xBF"), 0U) << "three bytes would do";
    EXPECT_EQ(utf8_character_bytes("\xED\xA0\x80"), 0U) << "a surrogate";
    EXPECT_EQ(utf8_character_bytes("\xF4\x90\x80\x80"), 0U) << "above U+10FFFF";
    EXPECT_EQ(utf8_character_bytes("\xF5\x80\x80\x80"), 0U);
}

TEST(Wrap, BreaksLinesAtBlanks) {
    const std::string words(76, 'x');
    EXPECT_EQ(wrap(words + " abc d", 2), words + " abc\n  d") << "80 columns fit";
    EXPECT_EQ(wrap(words + " abc d", 4, " \\\n"), words + " \\\n    abc d")
        << "blank and backslash are two of the 80 columns";
    EXPECT_EQ(wrap(words.substr(8) + ", abc defghijk", 0), words.substr(8) + ",\nabc defghijk")
        << "after a comma near the end";
    EXPECT_EQ(wrap("a " + words + words + " b", 4), "a\n    " + words + words + "\n    b")
        << "a longer word stays whole";
    EXPECT_EQ(wrap(words, 90), words);
    EXPECT_EQ(wrap_command(words + " abc d", 4), words + " \\\n    abc d");
    EXPECT_EQ(wrap_command(words + " 'abc d'", 4), words + " 'abc d'") << "a quoted blank stays";
}

TEST(ParseNumber, ReadsTheWholeTextOrNothing) {
    EXPECT_EQ(parse_number<int>("-17"), -17);
    EXPECT_EQ(parse_number<double>("2.5e3"), 2500);
    for (const char* text : {"", "1 ", " 1", "0x1", "1e99999", "+1"}) {
        EXPECT_EQ(parse_number<double>(text), std::nullopt) << text;
    }
    EXPECT_EQ(parse_number<int>("99999999999"), std::nullopt);
}

}  // namespace
}  // namespace hpcai
