// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <hpcai/data/pack.hpp>

#include "child_process.hpp"
#include "cli/command_line.hpp"
#include "cli/survey.hpp"
#include "data/png_files.hpp"

namespace hpcai::cli {
namespace {

namespace fs = std::filesystem;

/// A folder with a small set in "set", as `data generate` makes it.
class DataCommands : public ::testing::Test {
protected:
    DataCommands() { made_ = generate({}); }

    Outcome generate(const std::vector<std::string>& more) const {
        std::vector<std::string> arguments{"data",
                                           "generate",
                                           "photographs",
                                           "--output",
                                           "set",
                                           "--classes",
                                           "3",
                                           "--training-per-class",
                                           "4",
                                           "--validation-per-class",
                                           "2",
                                           "--size",
                                           "32",
                                           "--threads",
                                           "2"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_in(folder_.path(), arguments);
    }
    Outcome data(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), "data");
        return run_in(folder_.path(), arguments);
    }
    /// The first training image.
    fs::path first_picture() const {
        std::vector<fs::path> pictures;
        for (const auto& entry : fs::recursive_directory_iterator(folder_ / "set/train")) {
            if (entry.is_regular_file()) pictures.push_back(entry.path());
        }
        std::sort(pictures.begin(), pictures.end());
        return pictures.at(0);
    }
    void damage() const {
        const fs::path picture = first_picture();
        fs::resize_file(picture, fs::file_size(picture) / 2);
    }

    const TemporaryFolder folder_;
    Outcome made_;
};

TEST_F(DataCommands, GenerateWhatCheckFindsSound) {
    EXPECT_EQ(made_.exit_code, 0) << made_.error;
    EXPECT_EQ(made_.out, "set: 3 classes, each with 4 training and 2 test images\n");
    const Outcome check = data({"check", "set/train"});
    EXPECT_EQ(check.exit_code, 0) << check.error;
    EXPECT_TRUE(check.out.starts_with("set/train: 12 images of 3 classes, 4 per class"))
        << check.out;
    EXPECT_EQ(data({"check", "set/val"}).exit_code, 0);
}

TEST_F(DataCommands, GenerateKeepsTheSameSetAndDoesNotReplaceAnother) {
    const Outcome again = generate({});
    EXPECT_EQ(again.exit_code, 0) << again.error;
    EXPECT_TRUE(again.out.starts_with("set: exists already: ")) << again.out;
    expect_refused(generate({"--seed", "2"}), 2, "set: is not empty");
}

TEST_F(DataCommands, GenerateNamesTheFileOfADamagedMiniSet) {
    fs::create_directories(folder_ / "mini/weather");
    for (const char* name : {"train.h5", "test.h5"}) {
        std::ofstream(folder_ / "mini/weather" / name) << "is no HDF5";
    }
    const Outcome damaged =
        run_in(folder_.path(), {"data", "generate", "mini", "--output", "mini"});
    expect_refused(damaged, 4, "train.h5");
    expect_refused(damaged, 4, "remove the set with `rm -r mini/weather` and generate it again");
}

TEST_F(DataCommands, GenerateLeavesNothingWhereItCannotWrite) {
    const Outcome outcome =
        data({"generate", "photographs", "--output", "/proc/none/set", "--classes", "2"});
    expect_refused(outcome, 2, "/proc/none/set: cannot be written");
    expect_refused(
        data({"generate", "photographs", "--output", "x", "--quality", "101"}), 2,
        "data generate photographs: --quality: expected an integer from 1 to 100, got '101'");
    EXPECT_FALSE(fs::exists(folder_ / "x"));
}

TEST_F(DataCommands, StatsAreAPieceOfConfiguration) {
    const Outcome stats = data({"stats", "set/train"});
    ASSERT_EQ(stats.exit_code, 0) << stats.error;
    std::ofstream(folder_ / "f.yaml") << stats.out;
    const Outcome print =
        run_in(folder_.path(), {"config", "print", "--config", "f.yaml", "--json"});
    ASSERT_EQ(print.exit_code, 0) << print.error;
    const auto config = nlohmann::json::parse(print.out)["data"];
    const auto exact = nlohmann::json::parse(data({"stats", "set/train", "--json"}).out);
    for (const char* name : {"mean", "standard_deviation"}) {
        for (std::size_t channel = 0; channel < 3; ++channel) {
            const double value = exact[name][channel];
            EXPECT_GT(value, 0.05) << name;
            EXPECT_NEAR(value, config[name][channel].get<double>(), 0.5e-4 + 1e-12) << name;
        }
    }
}

TEST_F(DataCommands, AnIndexStandsForItsFolder) {
    const Outcome index = data({"index", "set/train", "--output", "set/train.jsonl"});
    EXPECT_EQ(index.exit_code, 0) << index.error;
    EXPECT_EQ(index.out, "wrote set/train.jsonl: 12 images of 3 classes\n");
    auto of_index = nlohmann::json::parse(data({"stats", "set/train.jsonl", "--json"}).out);
    auto of_folder = nlohmann::json::parse(data({"stats", "set/train", "--json"}).out);
    of_index.erase("path");
    of_folder.erase("path");
    EXPECT_EQ(of_index, of_folder);
    expect_refused(data({"index", "set/train", "--output", "none/train.jsonl"}), 2,
                   "none/train.jsonl");
    EXPECT_EQ(data({"index", "set/train", "--output", "set/train.jsonl"}).exit_code, 0);
    std::ofstream(folder_ / "other.txt") << "not an index";
    expect_refused(data({"index", "set/train", "--output", "other.txt"}), 2,
                   "data index: --output: expected a new file or an earlier output");
}

TEST_F(DataCommands, APackedFolderStandsForItsFolder) {
    const Outcome pack = data({"pack", "set/train", "--output", "packed"});
    EXPECT_EQ(pack.exit_code, 0) << pack.error;
    EXPECT_EQ(pack.out, "packed: 12 images in 1 shard; shards written earlier: 0\n");
    for (const char* survey : {"check", "stats"}) {
        auto of_shards = nlohmann::json::parse(data({survey, "packed", "--json"}).out);
        auto of_folder = nlohmann::json::parse(data({survey, "set/train", "--json"}).out);
        of_shards.erase("path");
        of_folder.erase("path");
        EXPECT_EQ(of_shards, of_folder);
    }
    expect_refused(data({"pack", "packed", "--output", "again"}), 2, "'packed' is packed already");
    std::ofstream(folder_ / "instances.json") << "{}";
    expect_refused(data({"pack", "instances.json", "--output", "again"}), 2,
                   "instances.json: expected class folders; VOC, COCO");
}

TEST(ThreadsOption, MeansAllCoresWhereItIsNotGiven) {
    CommandLine line({"hpcai500", "", "", "", "pack"});
    data::PackOptions pack;
    add_threads(line.program().add_command({"pack", "", {}}), pack.threads);
    EXPECT_EQ(pack.threads, 0) << "one thread is the default of the library";
}

TEST_F(DataCommands, CheckNamesATruncatedPicture) {
    damage();
    const Outcome text = data({"check", "set/train"});
    EXPECT_EQ(text.exit_code, 4);
    EXPECT_NE(text.out.find("\nbad      "), std::string::npos) << text.out;
    EXPECT_EQ(text.error, "hpcai500: set/train: 1 of 12 images is bad\n");
    const Outcome json = data({"check", "set/train", "--json"});
    EXPECT_EQ(json.exit_code, 4);
    const auto document = nlohmann::json::parse(json.out);
    EXPECT_EQ(document["bad_samples"], 1);
    ASSERT_EQ(document["bad"].size(), 1U);
    EXPECT_NE(document["bad"][0]["reason"], "");
}

TEST_F(DataCommands, CheckListsDecoderWarningsOfGoodPictures) {
    std::fstream file(first_picture(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(11);  // the JFIF version
    file.write("\x02\x09", 2);
    file.close();
    const Outcome text = data({"check", "set/train"});
    EXPECT_EQ(text.exit_code, 0) << text.error;
    EXPECT_NE(text.out.find("\nwarning  "), std::string::npos) << text.out;
    EXPECT_NE(text.out.find(": Warning: unknown JFIF revision number 2.09\n"), std::string::npos)
        << text.out;
    const auto document = nlohmann::json::parse(data({"check", "set/train", "--json"}).out);
    EXPECT_EQ(document["bad_samples"], 0);
    EXPECT_EQ(document["bad"].size(), 0U);
    EXPECT_EQ(document["warnings"].size(), 1U);
}

TEST_F(DataCommands, StatsLeaveABadPictureOut) {
    const auto before = nlohmann::json::parse(data({"stats", "set/train", "--json"}).out);
    damage();
    const Outcome outcome = data({"stats", "set/train", "--json"});
    EXPECT_EQ(outcome.exit_code, 4);
    const auto after = nlohmann::json::parse(outcome.out);
    EXPECT_LT(after["pixels"], before["pixels"]);
}

TEST_F(DataCommands, FoldersThatAreNotOnesAreRejected) {
    expect_refused(data({"check", "nowhere"}), 4, "nowhere");
    expect_refused(
        data({"check", "set"}), 4,
        "set: class 'train': expected a regular file *.jpg, *.jpeg, *.jpe or *.png; other "
        "files or folders: 3");
    fs::create_directory(folder_ / "set/val/empty");
    expect_refused(
        data({"stats", "set/val"}), 4,
        "class 'empty': expected a regular file *.jpg, *.jpeg, *.jpe or *.png; other files or "
        "folders: 0");
    expect_refused(data({"check", "set/photographs.json"}), 4, "photographs.json");
    std::ofstream(folder_ / "notes.txt") << "# notes\n";
    expect_refused(
        data({"check", "notes.txt"}), 4,
        "notes.txt: expected the folder above <class>/<image>.jpg or its index (JSON lines), got "
        "another file");
}

TEST_F(DataCommands, AnImageIsRejectedWithoutItsBytes) {
    fs::rename(first_picture(), folder_ / "one");
    expect_refused(data({"check", "one"}), 4,
                   "one: expected the folder above <class>/<image>.jpg or its index (JSON lines), "
                   "got a JPEG\n");
    std::ofstream(folder_ / "one") << "\x89PNG\r\n\x1a\n";
    expect_refused(data({"check", "one"}), 4, "got a PNG\n");
    fs::rename(folder_ / "one", folder_ / "one.json");
    expect_refused(data({"check", "one.json"}), 4, "; last read: '\\x89'\n");
}

TEST_F(DataCommands, AConfigurationIsRejectedWithTheCommandThatChecksIt) {
    std::ofstream(folder_ / "my run.yaml") << "run:\n";
    for (const char* command : {"check", "stats"}) {
        expect_refused(data({command, "my run.yaml"}), 2,
                       "'my run.yaml': expected images, Pascal VOC, COCO or ExtremeWeather "
                       "data, got a configuration file; `hpcai500 doctor --config "
                       "'my run.yaml'` checks it and its data");
    }
}

TEST_F(DataCommands, TheParentOfTheTrainingFolderIsRejectedWithItsName) {
    for (const char* command : {"check", "stats"})
        expect_refused(data({command, "set"}), 4,
                       "; did you mean a folder in it, such as set/train?\n");
    for (const char* command : {"index", "pack"})
        expect_refused(data({command, "set", "--output", "x"}), 4,
                       "; did you mean a folder in it, such as set/train?\n");
}

TEST_F(DataCommands, InitWritesAConfigurationOfTheMeasuredPictures) {
    const Outcome made = run_in(
        folder_.path(), {"init", "--data", "set", "--output", "my set.yaml", "--threads", "0"});
    EXPECT_EQ(made.exit_code, 0) << made.error;
    const std::string as_root =
        "  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n";
    EXPECT_EQ(made.out, "wrote my set.yaml; run it with\n" + (geteuid() == 0 ? as_root : "") +
                            "  mpirun --bind-to none -np 2 hpcai500 run --config 'my set.yaml'\n");
    const Outcome printed =
        run_in(folder_.path(), {"config", "print", "--config", "my set.yaml", "--json"});
    const auto config = nlohmann::json::parse(printed.out);
    EXPECT_EQ(config["run"]["name"], "my_set");
    EXPECT_EQ(config["workload"]["classes"], "auto");
    EXPECT_EQ(config["workload"]["image_size"], 32);
    EXPECT_EQ(config["training"]["batch_size"], 4) << "several steps per epoch of 12 images";
    EXPECT_EQ(config["data"]["path"], fs::absolute(folder_ / "set/train").string());
    const Outcome stats = data({"stats", "set/train", "--json"});
    const double mean = nlohmann::json::parse(stats.out)["mean"][0];
    EXPECT_NEAR(config["data"]["mean"][0].get<double>(), mean, 5e-5);
    const Outcome flops = run_in(
        folder_.path(), {"flops", "--config", "my set.yaml", "--set", "data.path=set/train"});
    EXPECT_NE(flops.out.find(", 3 classes\n"), std::string::npos) << flops.out << flops.error;
    expect_refused(run_in(folder_.path(), {"init", "--data", "set", "--output", "my set.yaml"}), 2,
                   "my set.yaml exists");
}

TEST_F(DataCommands, InitChoosesTheSizeOfTheMedianPicture) {
    data({"generate", "photographs", "--output", "large", "--classes", "2", "--training-per-class",
          "4", "--validation-per-class", "1", "--size", "80"});
    EXPECT_EQ(run_in(folder_.path(), {"init", "--data", "large", "--output", "x.yaml"}).error, "");
    EXPECT_NE(text_of(folder_ / "x.yaml").find("  image_size: 64 "), std::string::npos)
        << "sides of 61 to 80 pixels\n"
        << text_of(folder_ / "x.yaml");
}

TEST_F(DataCommands, InitRejectsFoldersWithoutTheSameClasses) {
    expect_refused(run_in(folder_.path(), {"init", "--data", "none", "--output", "no/x.yaml"}), 2,
                   "init: --output: expected a file in an existing folder, got 'no/x.yaml'");
    expect_refused(run_in(folder_.path(), {"init", "--data", "none", "--output", "x.yaml"}), 2,
                   "init: --data: expected a folder, got 'none'");
    expect_refused(run_in(folder_.path(), {"init", "--data", "set/train", "--output", "x.yaml"}), 2,
                   "set/train: expected subfolders train and val (or test)");
    fs::remove_all(fs::directory_iterator(folder_ / "set/val")->path());
    expect_refused(run_in(folder_.path(), {"init", "--data", "set", "--output", "x.yaml"}), 4,
                   "class");
    EXPECT_FALSE(fs::exists(folder_ / "x.yaml"));
}

TEST_F(DataCommands, InitTellsHowToConvertPicturesOfAnotherFormat) {
    fs::create_directories(folder_ / "scans/train/field");
    fs::create_directories(folder_ / "scans/val/field");
    std::ofstream(folder_ / "scans/train/field/1.tif") << "II*";
    expect_refused(run_in(folder_.path(), {"init", "--data", "scans", "--output", "x.yaml"}), 4,
                   "; convert images of other formats, perhaps 1.tif, for example with "
                   "ImageMagick's `mogrify -format png`\n");
}

TEST_F(DataCommands, InitNamesTheFolderThatHasOneClass) {
    for (const char* part : {"one/train/cat", "one/val/cat"}) {
        fs::create_directories(folder_ / part);
        fs::copy(first_picture(), folder_ / part / "1.jpg");
    }
    expect_refused(run_in(folder_.path(), {"init", "--data", "one", "--output", "x.yaml"}), 4,
                   "init: one/train: expected a folder for each of two or more classes; one class "
                   "folder found, cat\n");
}

TEST_F(DataCommands, TakePngFilesUpToAStepOfTraining) {
    for (int picture = 0; picture < 12; ++picture) {
        data::test::Bytes rows;
        for (int row = 0; row < 32; ++row) {
            rows.push_back(0);  // no filter
            for (int i = 0; i < 32 * 3; ++i)
                rows.push_back(static_cast<std::uint8_t>(20 * picture + 3 * row + i));
        }
        const fs::path file =
            folder_ /
            fmt::format("png/{}/{}/{}.png", picture < 8 ? "train" : "val", picture % 2, picture);
        fs::create_directories(file.parent_path());
        const data::test::Bytes bytes =
            data::test::png({.width = 32, .height = 32, .bits = 8, .colour_type = 2}, rows);
        std::ofstream(file, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    }
    const Outcome check = data({"check", "png/train"});
    EXPECT_TRUE(check.out.starts_with("png/train: 8 images of 2 classes, 4 per class"))
        << check.out << check.error;
    EXPECT_EQ(data({"pack", "png/train", "--output", "packed"}).exit_code, 0);
    const auto stats = nlohmann::json::parse(data({"stats", "packed", "--json"}).out);
    EXPECT_EQ(stats["mean"],
              nlohmann::json::parse(data({"stats", "png/train", "--json"}).out)["mean"]);
    EXPECT_EQ(stats["pixels"], 8 * 32 * 32);
    expect_refused(data({"show", "png/train", "--output", "x.png"}), 2,
                   "data show: png/train: expected HDF5 files, a folder of records or a result");
    ASSERT_EQ(run_in(folder_.path(), {"init", "--data", "png", "--output", "x.yaml"}).error, "");
    const Outcome trained = run_in(
        folder_.path(), {"run", "--config", "x.yaml", "--output", "result", "--set", "bagging.M=1",
                         "--set", "workload.epochs=1", "--set", "device.threads=1"});
    EXPECT_EQ(trained.exit_code, 0) << trained.error;
    EXPECT_NE(trained.out.find("\nRESULT CUSTOM  "), std::string::npos) << trained.out;
}

TEST_F(DataCommands, InitRejectsDamagedPictures) {
    damage();
    expect_refused(run_in(folder_.path(), {"init", "--data", "set", "--output", "x.yaml"}), 4,
                   "1 of 12 training images are bad");
    EXPECT_FALSE(fs::exists(folder_ / "x.yaml"));
}

}  // namespace
}  // namespace hpcai::cli
