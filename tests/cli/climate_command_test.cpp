// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "child_process.hpp"

namespace hpcai::cli {
namespace {

namespace fs = std::filesystem;

/// A folder with six samples of weather in "train.h5", as `data generate climate` makes them.
class ClimateCommands : public ::testing::Test {
protected:
    ClimateCommands() { made_ = generate("train.h5", {"--samples", "6"}); }

    Outcome generate(const std::string& file, const std::vector<std::string>& more) const {
        std::vector<std::string> arguments{"generate",  "climate", "--output", file,
                                           "--height",  "64",      "--width",  "96",
                                           "--threads", "2"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return data(arguments);
    }
    Outcome data(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), "data");
        return run_in(folder_.path(), arguments);
    }

    const TemporaryFolder folder_;
    Outcome made_;
};

TEST_F(ClimateCommands, GenerateWhatCheckFindsSound) {
    EXPECT_EQ(made_.exit_code, 0) << made_.error;
    EXPECT_EQ(made_.out, "train.h5: 6 samples of 16 channels, 64 x 96 pixels\n");
    const Outcome check = data({"check", "train.h5"});
    EXPECT_EQ(check.exit_code, 0) << check.error;
    EXPECT_TRUE(
        check.out.starts_with("train.h5: 6 samples of 16 channels, 64 x 96 pixels; boxes: "))
        << check.out;
    EXPECT_TRUE(check.out.find(", read as corners; ") != std::string::npos) << check.out;
    const auto json = nlohmann::json::parse(data({"check", "train.h5", "--json"}).out);
    EXPECT_EQ(json["samples"], 6);
    EXPECT_EQ(json["channels"][6], "TMQ");
    EXPECT_EQ(json["files_by_box_order"], nlohmann::json({{"corners", 1}, {"ranges", 0}}));
    expect_refused(generate("train.h5", {}), 2, "train.h5: exists already");
    expect_refused(data({"generate", "climate", "--output", "x.h5", "--height", "63"}), 2,
                   "data generate climate: --height: expected an integer from 64 to 768");
    expect_refused(generate("x.h5", {"--split", "test"}), 2, "expected training or validation");
    expect_refused(generate("x.h5", {"--label-dropout", "1.5"}), 2,
                   "--label-dropout: expected a number from 0 to 1, got '1.5'");
    EXPECT_EQ(generate("sharp.h5", {"--samples", "1", "--label-dropout", "0", "--amplitude", "0",
                                    "--event-rate", "10"})
                  .out,
              "sharp.h5: 1 sample of 16 channels, 64 x 96 pixels\n");
    EXPECT_TRUE(data({"check", "sharp.h5"}).out.starts_with("sharp.h5: 1 sample of 16 channels"));
}

TEST_F(ClimateCommands, TranscodeToRecordsWithTheTrainingSetsStatistics) {
    const Outcome train =
        data({"transcode", "train.h5", "--output", "train", "--precision", "bf16"});
    ASSERT_EQ(train.exit_code, 0) << train.error;
    EXPECT_EQ(train.out, "train: 6 records, 1.12 MiB; 0 bad samples skipped, 0 boxes dropped\n");
    ASSERT_EQ(generate("test.h5", {"--samples", "2", "--split", "validation"}).exit_code, 0);
    const Outcome test =
        data({"transcode", "test.h5", "--output", "test", "--statistics-from", "train"});
    ASSERT_EQ(test.exit_code, 0) << test.error;
    EXPECT_EQ(data({"check", "test"}).out,
              "test: 2 records of 16 channels, 64 x 96 pixels, fp16\n");

    const auto measured = nlohmann::json::parse(data({"stats", "train.h5", "--json"}).out);
    const auto used = nlohmann::json::parse(data({"stats", "test", "--json"}).out);
    EXPECT_EQ(used["mean"], measured["mean"]);
    EXPECT_EQ(used["standard_deviation"], measured["standard_deviation"]);
    EXPECT_TRUE(data({"stats", "train.h5"}).out.find("\nQREFHT ") != std::string::npos);
    EXPECT_TRUE(data({"stats", "train"}).out.find("\nQREFHT ") != std::string::npos);
}

TEST_F(ClimateCommands, CheckNamesADamagedRecord) {
    ASSERT_EQ(data({"transcode", "train.h5", "--output", "train"}).exit_code, 0);
    std::fstream file(folder_ / "train/records-00000.bin",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(64 * 96 * 16 * 2 + 5);  // in the second sample
    file.put('x');
    file.close();
    expect_refused(data({"check", "train"}), 4, "record 1 (train.h5/1) is damaged");
}

TEST_F(ClimateCommands, ShowDrawsFilesAndRecords) {
    ASSERT_EQ(data({"transcode", "train.h5", "--output", "train"}).exit_code, 0);
    for (const char* source : {"train.h5", "train"}) {
        const Outcome show =
            data({"show", source, "--sample", "1", "--channel", "PSL", "--output", "x.png"});
        ASSERT_EQ(show.exit_code, 0) << show.error;
        EXPECT_TRUE(show.out.starts_with("wrote x.png: PSL of sample 1, 64 x 96 pixels\n"));
        EXPECT_TRUE(text_of(folder_ / "x.png").starts_with("\x89PNG"));
    }
    expect_refused(data({"show", "train.h5", "--sample", "6", "--output", "x.png"}), 2,
                   "data show: --sample: expected 0 to 5, got 6");
    expect_refused(data({"show", "train.h5", "--channel", "PSI", "--output", "x.png"}), 2,
                   "got 'PSI'; did you mean 'PS");
    expect_refused(data({"show", ".", "--box-order", "x", "--output", "x.png"}), 2,
                   "data show: --box-order: expected detect, corners or ranges, got 'x'");
    expect_refused(data({"show", "nothing", "--output", "x.png"}), 2,
                   "data show: nothing: expected HDF5 files, a folder of records or a result");
}

TEST_F(ClimateCommands, AnInvalidFileIsRejectedOnce) {
    std::ofstream(folder_ / "bad.h5") << "text";
    expect_refused(data({"check", "bad.h5"}), 4, "'bad.h5' cannot be opened as HDF5");
    expect_refused(data({"stats", "none.h5"}), 4, "cannot read 'none.h5'");
    expect_refused(data({"transcode", "bad.h5", "--output", "x"}), 4, "'bad.h5' cannot be opened");
    EXPECT_FALSE(fs::exists(folder_ / "x"));
}

}  // namespace
}  // namespace hpcai::cli
