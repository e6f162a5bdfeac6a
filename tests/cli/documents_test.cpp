// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <regex>
#include <sstream>

#include "child_process.hpp"

namespace hpcai::cli {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
    std::istringstream stream(text);
    Lines lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

/// Returns the first group of every match.
Lines found_in(const std::string& text, const char* pattern) {
    const std::regex expression(pattern);
    return {std::sregex_token_iterator(text.begin(), text.end(), expression, 1), {}};
}

TEST(Readme, BeginsWithTheTwoCommands) {
    const Lines lines = lines_of(text_of(source("README.md")));
    for (const char* wanted : {"\\./scripts/quickstart\\.sh.*", "\\./scripts/test\\.sh.*",
                               "RESULT [A-Z]+  workload=.*"}) {
        const std::regex expression(wanted);
        const auto line = std::find_if(
            lines.begin(), lines.end(),
            [&](const std::string& candidate) { return std::regex_match(candidate, expression); });
        EXPECT_LT(line - lines.begin(), 50) << wanted;
    }
}

TEST(Readme, NamesEveryCommand) {
    const std::string readme = text_of(source("README.md"));
    std::string help = run({"--help"}).out;
    help.resize(help.find("\nExamples:"));
    const Lines commands = found_in(help, "\n  ([a-z][a-z-]*) ");
    EXPECT_GE(commands.size(), 7U);
    for (const std::string& command : commands) {
        EXPECT_NE(readme.find("`" + command + "`"), std::string::npos) << command;
    }
}

TEST(ResultFormat, ListsEveryExitCode) {
    const std::string document = text_of(source("docs/RESULT_FORMAT.md"));
    const Lines codes = found_in(text_of(source("include/hpcai/base/error.hpp")), " = ([0-9]+),");
    EXPECT_GE(codes.size(), 11U);
    for (const std::string& code : codes) {
        EXPECT_NE(document.find("\n| " + code + " | "), std::string::npos) << code;
    }
}

TEST(Commands, AreTheTextMadeFromTheHelp) {
    const Outcome made = execute_in(
        source(""), {"python3", "scripts/make_commands.py", environment("HPCAI500_BINARY")});
    EXPECT_EQ(made.exit_code, 0) << made.error;
    EXPECT_TRUE(made.out == text_of(source("docs/COMMANDS.md")))
        << "docs/COMMANDS.md is out of date: "
           "scripts/make_commands.py build/release/hpcai500 > docs/COMMANDS.md";
}

TEST(Tour, BringsInEveryModuleOnce) {
    Lines in_tour = found_in(text_of(source("docs/TOUR.md")), "\\*\\*`([a-z]+)`\\*\\*");
    Lines modules = found_in(text_of(source("docs/layers.txt")), "\n([a-z]+):");
    std::sort(in_tour.begin(), in_tour.end());
    std::sort(modules.begin(), modules.end());
    EXPECT_EQ(in_tour, modules);
}

TEST(Rules, AreNumberedAsTheVerdictNamesThem) {
    // Each workload has separate rules 1 to 4.
    Lines documented = found_in(text_of(source("docs/RULES.md")), "\n([0-9]+)\\. ");
    std::sort(documented.begin(), documented.end());
    documented.erase(std::unique(documented.begin(), documented.end()), documented.end());
    const std::string code = text_of(source("src/verification/verdict.cpp"));
    Lines judged = found_in(code, "(?:equal|at_least|rule_of_key|rule_against)\\(([0-9]+),");
    for (const std::string& number : found_in(code, "\"rule ([0-9]+):")) judged.push_back(number);
    for (const std::string& number : found_in(code, "\\{([0-9]+), \"")) judged.push_back(number);
    std::sort(judged.begin(), judged.end());
    judged.erase(std::unique(judged.begin(), judged.end()), judged.end());
    EXPECT_EQ(documented, judged);
}

}  // namespace
}  // namespace hpcai::cli
