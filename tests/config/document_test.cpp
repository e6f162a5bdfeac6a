// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/base/philox.hpp>

#include "config/config_messages.hpp"

namespace hpcai::config {
namespace {

using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Document, RejectsAKeyOrSectionGivenTwice) {
    EXPECT_EQ(
        message_of("bagging:\n  M: 4\n  P_degree: 1\n  M: 2\n"),
        "f.yaml:4:3: bagging.M: expected each key once, got it again; the first is on line 2");
    EXPECT_EQ(message_of("run:\n  seed: 2\nrun:\n  seed: 3\n"),
              "f.yaml:3:1: run: expected each key once, got it again; the first is on line 1");
    EXPECT_THAT(message_of("bagging: {M: 1, \"M\": 2}"), StartsWith("f.yaml:1:17: bagging.M:"));
}

TEST(Document, RejectsAnchorsAliasesMergeKeysTagsAndDirectives) {
    EXPECT_EQ(message_of("run: &a\n  seed: 2\n"),
              "f.yaml:1:6: run: expected a plain value, got an anchor (&)");
    EXPECT_EQ(message_of("run: {seed: &a 2}\n"),
              "f.yaml:1:13: run.seed: expected a plain value, got an anchor (&)");
    EXPECT_THAT(message_of("a: &a [*a]\n"), HasSubstr("got an anchor"));
    EXPECT_THAT(message_of("run: *a\n"), StartsWith("f.yaml:1:6: expected YAML"));
    EXPECT_EQ(message_of("run:\n  <<: {seed: 3}\n"),
              "f.yaml:2:3: run.<<: expected the name of a key, got '<<' (merge keys are not "
              "allowed)");
    EXPECT_EQ(message_of("run:\n  seed: !!int 3\n"),
              "f.yaml:2:9: run.seed: expected a plain value, got a tag (tag:yaml.org,2002:int)");
    EXPECT_THAT(message_of("run:\n  name: ! x\n"), HasSubstr("or a tag"));
    EXPECT_THAT(message_of("%YAML 1.2\n---\nrun:\n"), StartsWith("f.yaml:1:1: expected sections"));
    EXPECT_THAT(message_of("# x\n%FOO\n---\nrun:\n"), StartsWith("f.yaml:2:1: expected sections"));
}

TEST(Document, RejectsASecondDocument) {
    EXPECT_EQ(message_of("run:\n  seed: 2\n---\nrun:\n  seed: 3\n"),
              "f.yaml:3:1: expected one YAML document, got a second one");
    EXPECT_EQ(message_of("---\nrun:\n  seed: 2\n...\n"), "accepted");
}

TEST(Document, RejectsTabsControlCharactersAndBytesOutsideUtf8) {
    EXPECT_EQ(message_of("run:\n\tseed: 2\n"), "f.yaml:2:1: expected spaces, got a tab");
    EXPECT_EQ(message_of("run:\n  seed:\t2\n"), "f.yaml:2:8: expected spaces, got a tab");
    EXPECT_EQ(message_of("run:\n  name: \xFF\n"),
              "f.yaml:2:9: expected UTF-8 text, got the byte 0xff");
    // Invalid UTF-8: overlong, surrogate, truncated, beyond U+10FFFF.
    for (const char* bytes : {"\xC0\xAF", "\xED\xA0\x80", "\xE2\x82", "\xF4\x90\x80\x80"}) {
        EXPECT_THAT(message_of(std::string("# ") + bytes),
                    StartsWith("f.yaml:1:3: expected UTF-8"));
    }
    EXPECT_EQ(message_of(std::string("run:\0", 5)),
              "f.yaml:1:5: expected text, got the control character '\\x00'");
    EXPECT_THAT(message_of("# \x1B[31m"), HasSubstr("'\\x1b'"));
    EXPECT_THAT(message_of("# \xC2\x9B"), HasSubstr("'\\xc2\\x9b'"));
    EXPECT_THAT(message_of("run:\r  seed: 2\n"), HasSubstr("'\\x0d'"));
    EXPECT_EQ(message_of("run:\r\n  seed: 2\r\n"), "accepted");
    EXPECT_EQ(message_of("\xEF\xBB\xBFrun:\n  seed: 2  # \xE2\x82\xAC\n"), "accepted");
}

TEST(Document, RejectsTextsThatDoNotEndOnTheirLine) {
    // yaml-cpp alone reads the rest of the file as part of the name.
    EXPECT_EQ(message_of("run:\n  output: \"a\n  seed: 3\n"),
              "f.yaml:2:11: run.output: expected a string on one line, got a string without a "
              "closing quote");
    EXPECT_THAT(message_of("run:\n  output: 'it''s\n"), HasSubstr("without a closing quote"));
    EXPECT_THAT(message_of("run:\n  output: \"a\\\"\n"), HasSubstr("without a closing quote"));
    EXPECT_THAT(message_of("run:\n  output: |\n    a\n"), HasSubstr("a block of text"));
    EXPECT_THAT(message_of("run:\n  output: a\n    b\n"), HasSubstr("got several lines"));
    EXPECT_EQ(message_of("run:\n  output: 'it''s'\n"), "accepted");
    EXPECT_EQ(message_of("# \xE2\x82\xAC\r\nrun:\r\n  output: \"a\\\"b\"\r\n"), "accepted");
}

TEST(Document, RejectsEveryOtherShapeThanSectionsOfKeys) {
    EXPECT_EQ(message_of("[1]\n"), "f.yaml:1:1: expected sections of keys, got a list");
    EXPECT_EQ(message_of("42\n"), "f.yaml:1:1: expected sections of keys, got a value");
    EXPECT_EQ(message_of("run: 42\n"), "f.yaml:1:6: run: expected keys with values, got '42'");
    EXPECT_EQ(message_of("run: [a]\n"), "f.yaml:1:6: run: expected keys with values, got a list");
    EXPECT_THAT(message_of("? [a]\n: b\n"), HasSubstr("expected the name of a key, got a list"));
    EXPECT_THAT(message_of(": 3\n"), HasSubstr("expected the name of a key, got nothing"));
    EXPECT_THAT(message_of("data:\n  mean: [[1]]\n"), EndsWith("got deeper nesting"));
    EXPECT_THAT(message_of("run: {name: a\n"), StartsWith("f.yaml:2:1: expected YAML"));
    EXPECT_THAT(message_of("run: a: b\n"), StartsWith("f.yaml:1:7: expected YAML"));
    EXPECT_EQ(message_of("run:\n  seed: 3  # a comment\n   name: x\n"),
              "f.yaml:3:4: expected YAML, got an error: end of map not found; check the "
              "indentation");
}

TEST(Document, NamesTheLineWithTheFaultBeforeTheLineOfTheError) {
    EXPECT_EQ(message_of("run:\n  seed: 3\nworkload\n\n  epochs: 1\n"),
              "f.yaml:5:9: expected YAML, got an error: illegal map value; line 3 has no colon");
    EXPECT_EQ(message_of("run:\n  seed: 3\nworkload  # a: b\n  epochs: 1\n"),
              "f.yaml:3:1: expected YAML, got an error: end of map not found; check the "
              "indentation; line 3 has no colon");
    EXPECT_EQ(message_of("run: a: b\n"),
              "f.yaml:1:7: expected YAML, got an error: illegal map value");
    EXPECT_EQ(message_of("run:\n  seed: 3\n   name: x\n"),
              "f.yaml:2:9: run.seed: expected a value on one line, got several lines; check the "
              "indentation of the next line");
}

TEST(Document, NamesTheLineWithoutABlankAfterItsColon) {
    for (const char* line : {"epochs:90", "epochs:90  # a: b", "epochs:90 \r"})
        EXPECT_THAT(message_of(fmt::format("workload:\n  image_size: 32\n  {}\nrun:\n", line)),
                    EndsWith("; line 3 has no blank after its colon"))
            << line;
    EXPECT_THAT(message_of("workload:\n  epochs:90\n  image_size: 32\n"),
                EndsWith("; line 2 has no blank after its colon"));
}

TEST(Document, AcceptsEmptyFilesAndSections) {
    EXPECT_EQ(message_of(""), "accepted");
    EXPECT_EQ(message_of("# nothing\n"), "accepted");
    EXPECT_EQ(message_of("run:\ntraining: {}\n"), "accepted");
}

TEST(Document, RejectsHugeAndDeepFilesQuickly) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(message_of(std::string(10 << 20, 'x')),
              "f.yaml: expected a configuration of at most 1 MiB, got more");
    std::string deep;
    for (int i = 0; i < 50000; ++i) deep += "{a: ";
    EXPECT_THAT(message_of(deep), HasSubstr("expected"));
    EXPECT_THAT(message_of(std::string(100000, '[')), HasSubstr("expected"));
    std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
    for (char name = 'b'; name <= 'i'; ++name) {
        const std::string before = fmt::format("*{}", static_cast<char>(name - 1));
        bomb += fmt::format("{0}: &{0} [{1},{1},{1},{1},{1},{1},{1},{1},{1}]\n", name, before);
    }
    EXPECT_THAT(message_of(bomb), HasSubstr("got an anchor"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

/// Returns `text` with one to four random bytes replaced, removed or inserted.
std::string mutated(std::string text, CounterStream& random) {
    static const std::string kBytes = "\n \t:-[]{}#&*!|>'\"%@`,?a0.~<\\\xC3\x80";
    const std::uint32_t changes = 1 + random.next_u32() % 4;
    for (std::uint32_t i = 0; i < changes; ++i) {
        const std::size_t at = random.next_u32() % text.size();
        const char byte = kBytes[random.next_u32() % kBytes.size()];
        const std::uint32_t kind = random.next_u32() % 3;
        if (kind == 0) text[at] = byte;
        if (kind == 1) text.erase(at, 1 + random.next_u32() % 3);
        if (kind == 2) text.insert(at, 1, byte);
    }
    return text;
}

TEST(Document, MutatedFilesAreAcceptedOrRejectedInOneLine) {
    const std::string file =
        "run:\n  name: \"a b\"\n  seed: 3\nbagging: {M: 2, P_degree: auto}\n"
        "data:\n  mean: [0.1, 0.2, 0.3]\n  path: 'x''y'\ntraining:\n  schedule_epochs:\n    - 1\n";
    int refused = 0;
    for (std::uint32_t i = 0; i < 3000; ++i) {
        CounterStream random(1, RandomPurpose::shuffle, i, 0, 0);
        const std::string message = message_of(mutated(file, random));
        EXPECT_THAT(message, AnyOf("accepted", StartsWith("f.yaml:"))) << "mutation " << i;
        if (message != "accepted") ++refused;
    }
    EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace hpcai::config
