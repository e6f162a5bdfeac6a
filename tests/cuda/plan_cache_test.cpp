// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/plan_cache.hpp"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace hpcai::device::cuda {
namespace {

const PlanCache::Machine kMachine{"NVIDIA H200", "9.19.0"};

class PlanCacheFile : public testing::Test {
protected:
    PlanCacheFile() {
        std::filesystem::remove_all(folder_);
        std::filesystem::create_directories(folder_);
    }
    ~PlanCacheFile() override { std::filesystem::remove_all(folder_); }

    std::filesystem::path path() const { return folder_ / "sub" / "plans.json"; }
    void write(const std::string& text) const {
        std::filesystem::create_directories(path().parent_path());
        std::ofstream(path()) << text;
    }
    std::string text() const {
        std::ifstream stream(path());
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    void save_one() const {
        PlanCache cache(path(), kMachine);
        cache.insert("forward 1x2x3x4", "eng1_k2=3");
        cache.save();
        EXPECT_EQ(cache.warning(), "");
    }

private:
    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() /
        ("plan_cache_" + std::to_string(reinterpret_cast<std::uintptr_t>(this)) + "_" +
         testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(PlanCacheFile, KeepsPlansFromRunToRun) {
    save_one();
    const PlanCache again(path(), kMachine);
    EXPECT_EQ(again.find("forward 1x2x3x4"), "eng1_k2=3");
    EXPECT_EQ(again.find("forward 1x2x3x5"), "");
    EXPECT_EQ(again.warning(), "");
}

TEST_F(PlanCacheFile, KeepsWhatIsKnownOfOtherPlans) {
    PlanCache first(path(), kMachine), second(path(), kMachine);
    first.insert_timings("a", {{"eng1", 1e-3, 256, true}, {"eng2", 2e-3, 0, {}}});
    first.bar("a", "eng3");
    second.insert_timings("b", {{"eng1", 3e-3, 0, false}});
    second.bar("a", "eng4");
    first.save();
    second.save();
    const PlanCache both(path(), kMachine);
    EXPECT_EQ(both.barred("a"), (std::set<std::string>{"eng3", "eng4"}));
    EXPECT_TRUE(both.barred("b").empty());
    EXPECT_EQ(both.find("a"), "") << "none of these was chosen";
    EXPECT_EQ(nlohmann::json::parse(text())["timings"], nlohmann::json::parse(R"({
        "a": [{"name": "eng1", "seconds": 1e-3, "workspace_bytes": 256, "agrees": true},
              {"name": "eng2", "seconds": 2e-3, "workspace_bytes": 0, "agrees": null}],
        "b": [{"name": "eng1", "seconds": 3e-3, "workspace_bytes": 0, "agrees": false}]})"));
}

TEST_F(PlanCacheFile, NeverGivesAPlanThatAnotherProcessBarred) {
    PlanCache first(path(), kMachine), second(path(), kMachine);
    first.insert("a", "eng1");
    first.save();
    second.bar("a", "eng1");
    second.save();
    PlanCache both(path(), kMachine);
    EXPECT_EQ(both.find("a"), "");
    both.insert("a", "eng2");
    EXPECT_EQ(both.find("a"), "eng2");
}

TEST_F(PlanCacheFile, OfAnotherFormatCountsAsEmpty) {
    write(R"({"format": 1, "device": "NVIDIA H200", "cudnn": "9.19.0", "plans": {"a": "eng1"}})");
    const PlanCache cache(path(), kMachine);
    EXPECT_EQ(cache.find("a"), "");
    EXPECT_NE(cache.warning().find("in format 1"), std::string::npos) << cache.warning();
}

TEST_F(PlanCacheFile, LeavesNoPartOfAFile) {
    save_one();
    const std::filesystem::directory_iterator files(path().parent_path());
    EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(PlanCacheFile, KeepsWhatAnotherRankHasWritten) {
    PlanCache first(path(), kMachine), second(path(), kMachine);
    first.insert("a", "1");
    second.insert("b", "2");
    first.save();
    second.save();
    const PlanCache both(path(), kMachine);
    EXPECT_EQ(both.find("a"), "1");
    EXPECT_EQ(both.find("b"), "2");
}

TEST_F(PlanCacheFile, IsNotTouchedWhenNothingIsNew) {
    save_one();
    const std::string before = text();
    write(before + " ");
    PlanCache cache(path(), kMachine);
    cache.insert("forward 1x2x3x4", "eng1_k2=3");
    cache.save();
    EXPECT_EQ(text(), before + " ");
}

TEST_F(PlanCacheFile, OfAnotherMachineCountsAsEmpty) {
    save_one();
    for (const PlanCache::Machine& other : {PlanCache::Machine{"NVIDIA H100", "9.19.0"},
                                            PlanCache::Machine{"NVIDIA H200", "9.20.0"}}) {
        const PlanCache cache(path(), other);
        EXPECT_EQ(cache.find("forward 1x2x3x4"), "");
        EXPECT_NE(cache.warning().find("plans are of NVIDIA H200 with cuDNN 9.19.0"),
                  std::string::npos)
            << cache.warning();
    }
}

TEST_F(PlanCacheFile, ThatIsDamagedCountsAsEmptyAndIsReplaced) {
    save_one();
    const std::string whole = text();
    for (
        const std::string& damaged :
        {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"), std::string("{}"),
         std::string(
             R"({"format": 2, "device": 7, "cudnn": "9.19.0", "plans": {}, "barred": {}, "timings": {}})"),
         std::string(R"({"format": 2, "device": "NVIDIA H200", "cudnn": "9.19.0", "plans": [1],
                          "barred": {}, "timings": {}})"),
         std::string(R"({"format": 2, "device": "NVIDIA H200", "cudnn": "9.19.0",
                          "plans": {"forward 1x2x3x4": 5}, "barred": {}, "timings": {}})"),
         std::string(R"({"format": 2, "device": "NVIDIA H200", "cudnn": "9.19.0",
                          "plans": {}, "barred": {}, "timings": {"forward 1x2x3x4": [{"name": 1}]}})")}) {
        write(damaged);
        PlanCache cache(path(), kMachine);
        EXPECT_EQ(cache.find("forward 1x2x3x4"), "") << damaged;
        EXPECT_NE(cache.warning().find(path().string()), std::string::npos) << damaged;
        cache.insert("forward 1x2x3x4", "eng1_k2=3");
        cache.save();
        EXPECT_EQ(PlanCache(path(), kMachine).find("forward 1x2x3x4"), "eng1_k2=3");
    }
}

TEST_F(PlanCacheFile, ThatCannotBeWrittenIsAWarning) {
    write("{}");
    PlanCache cache(path() / "below_a_file.json", kMachine);
    cache.insert("a", "1");
    cache.save();
    EXPECT_NE(cache.warning().find("not written"), std::string::npos);
    EXPECT_EQ(cache.find("a"), "1");
}

TEST(PlanCache, NeedsNoFile) {
    PlanCache cache("", kMachine);
    cache.insert("a", "1");
    cache.insert("a", "2");
    cache.save();
    EXPECT_EQ(cache.find("a"), "2");
    EXPECT_EQ(cache.warning(), "");
}

}  // namespace
}  // namespace hpcai::device::cuda
