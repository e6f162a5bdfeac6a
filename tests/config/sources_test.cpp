// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <hpcai/base/error.hpp>
#include <hpcai/config/reader.hpp>

namespace hpcai::config {
namespace {

namespace fs = std::filesystem;

class Sources : public testing::Test {
protected:
    Sources() { fs::create_directory(folder_); }
    ~Sources() override { fs::remove_all(folder_); }

    std::string file(const std::string& name, const std::string& text) const {
        const std::string path = (folder_ / name).string();
        std::ofstream(path) << text;
        return path;
    }

    std::string refusal_of(const config::Sources& sources) const {
        try {
            load(sources);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::usage);
            return error.what();
        }
        ADD_FAILURE() << "nothing was thrown";
        return {};
    }

    fs::path folder_ = fs::temp_directory_path() /
                       ("hpcai500-sources-" +
                        std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(Sources, AreTheDefaultsThenTheFilesInOrderThenOverrides) {
    const std::string first =
        file("a.yaml", "run:\n  seed: 7\n  name: a\nworkload:\n  epochs: 8\n");
    const std::string second = file("b.yaml", "run:\n  name: b\nworkload:\n  classes: 5\n");
    const Config config = load({{first, second}, {"workload.epochs=9"}});
    EXPECT_EQ(config.run.seed, 7U);
    EXPECT_EQ(config.run.name, "b");
    EXPECT_EQ(config.workload.classes, 5);
    EXPECT_EQ(config.workload.epochs, 9);
    EXPECT_EQ(load({{second, first}, {}}).run.name, "a");
    EXPECT_EQ(load({}).run.seed, Config{}.run.seed);
}

TEST_F(Sources, LocateTheKeyThatALaterErrorNames) {
    const std::string first = file("a.yaml", "data:\n  path: train\n  validation_path: val\n");
    const std::string second = file("b.yaml", "data:\n  path: other\n");
    const config::Sources sources{{first, second}, {"data.validation_path=a b"}};
    EXPECT_EQ(locate(sources, "data.path: 'other': x"), second + ":2:9: data.path: 'other': x");
    EXPECT_EQ(locate(sources, "data.validation_path: x"),
              "--set data.validation_path=a b: data.validation_path: x");
    EXPECT_EQ(locate(sources, "data.kind: x"), "data.kind: x") << "has its default";
    EXPECT_EQ(locate(sources, first + ": x"), first + ": x");
    EXPECT_EQ(locate({{folder_ / "none"}, {}}, "data.path: x"), "data.path: x");
    ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
    EXPECT_EQ(locate({{first, folder_ / "pipe"}, {}}, "data.path: x"), "data.path: x");
    EXPECT_EQ(locate({}, "data.path: x"), "data.path: x");
    EXPECT_EQ(locate_errors(sources, [] { return 3; }), 3);
    try {
        locate_errors(sources, [] { throw Error(ExitCode::data, "data.path: x"); });
        FAIL() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data);
        EXPECT_EQ(error.what(), second + ":2:9: data.path: x");
    }
}

TEST_F(Sources, NameTheFileOfAnError) {
    const std::string good = file("good.yaml", "workload:\n  epochs: 2\n");
    const std::string bad = file("bad.yaml", "training:\n  warmup_epochs: 2\n");
    EXPECT_EQ(refusal_of({{good, bad}, {}}).find(bad + ":2:18: training.warmup_epochs: "), 0U)
        << refusal_of({{good, bad}, {}});
    EXPECT_EQ(
        refusal_of({{bad, folder_ / "none.yaml"}, {}}).find("'" + (folder_ / "none.yaml").string()),
        0U);
}

}  // namespace
}  // namespace hpcai::config
