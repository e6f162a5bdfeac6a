// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <hpcai/report/html.hpp>

#include "example_page.hpp"

namespace hpcai::report {
namespace {

TEST(Page, ShowsTheScoreBeforeTheVerdictIfItMayBeUsed) {
    RunRecord record = example_record();
    EXPECT_TRUE(has(read_page(html(example_content(record))), "36.0 GFLOPS VFLOPS VALID"));
    record.verdict.status = Status::custom;
    EXPECT_TRUE(has(read_page(html(example_content(record))), "36.0 GFLOPS VFLOPS CUSTOM"));
    for (const Status status : {Status::invalid, Status::partial}) {
        record.verdict.status = status;
        EXPECT_FALSE(has(read_page(html(example_content(record))), "36.0 GFLOPS VFLOPS"));
    }
}

TEST(Page, HasSpeedAndUtilizationInItsCards) {
    RunRecord record = example_record();
    const ReadPage page = read_page(html(example_content(record)));
    EXPECT_TRUE(has(page, "samples/s 24.0 of all groups"));
    EXPECT_TRUE(has(page, "utilization 25.0\xC2\xA0% of the measured ceiling"));
    record.utilization.fraction = {std::nullopt, "run.roofline is off"};
    EXPECT_TRUE(
        has(read_page(html(example_content(record))), "utilization n/a run.roofline is off"));
}

TEST(Page, ExplainsWhyVflopsExceedFlops) {
    RunRecord record = example_record();
    const std::string words = "VFLOPS exceed FLOPS, because the quality is above the target.";
    EXPECT_FALSE(has(read_page(html(example_content(record))), words));
    record.scores.penalty_coefficient = {1.25, ""};
    EXPECT_TRUE(has(read_page(html(example_content(record))), words));
}

TEST(Page, LinksItsSectionsAndTheFilesOfTheResult) {
    const RunRecord record = example_record();
    PageContent content = example_content(record);
    content.files = {"config.yaml", "groups/0/steps.csv"};
    const ReadPage page = read_page(html(content));
    std::set<std::string> sections, addresses;
    for (const Tag& tag : page.tags) {
        for (const auto& [name, value] : tag.attributes) {
            if (tag.name == "section" && name == "id") sections.insert("#" + value);
            if (tag.name == "a" && name == "href") addresses.insert(value);
        }
    }
    std::set<std::string> expected{"config.yaml", "groups/0/steps.csv"};
    for (const std::string& section : sections) {
        if (section != "#verdict" && section != "#headline") expected.insert(section);
    }
    EXPECT_EQ(addresses, expected);
    EXPECT_EQ(sections.contains("#files"), true);
    EXPECT_FALSE(has(read_page(html(example_content(record))), "config.yaml"));
}

TEST(Page, ListsTheClassesThatAreConfused) {
    const RunRecord record = example_record();
    PageContent content = example_content(record);
    content.confusions = {{"cat", "<dog>", 12}, {"dog", "cat", 3}};
    const ReadPage page = read_page(html(content));
    EXPECT_TRUE(has(page, "cat <dog> 12 dog cat 3"));
    EXPECT_FALSE(has(read_page(html(example_content(record))), "confuses"));
}

TEST(Page, OmitsTheNoteOfAMissingNumber) {
    RunRecord record = example_record();
    record.communication.bandwidth_bytes_per_second = {std::nullopt, "no device has timed them"};
    std::get<TopAccuracyRecord>(record.quality.metric).out_of_bag = {std::nullopt, "no bags"};
    const ReadPage page = read_page(html(example_content(record)));
    EXPECT_TRUE(has(page, "all-reduce bandwidth n/a no device has timed them"));
    EXPECT_FALSE(has(page, "timed them per second"));
    EXPECT_TRUE(has(page, "out of bag n/a no bags"));
    EXPECT_FALSE(has(page, "training samples"));
}

TEST(Page, SmoothsTheLossOfManySteps) {
    const RunRecord record = example_record();
    const auto lines = [&](int steps, const std::string& words) {
        const ReadPage page =
            read_page(html({record, {example_steps(steps, 16), example_steps(steps, 12)}, {}, {}}));
        EXPECT_EQ(has(page, "light lines are not smoothed"), !words.empty()) << steps;
        return std::ranges::count_if(page.tags, [](const Tag& tag) {
            return tag.name == "path" && tag.attributes.front().second.starts_with("raw ");
        });
    };
    EXPECT_EQ(lines(6, ""), 0);
    EXPECT_EQ(lines(600, "light"), 2);
}

}  // namespace
}  // namespace hpcai::report
