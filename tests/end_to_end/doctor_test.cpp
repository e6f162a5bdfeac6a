// SPDX-License-Identifier: Apache-2.0
#include <regex>

#include "end_to_end/launch.hpp"

namespace hpcai::end_to_end {
namespace {

TEST(ProgramStart, LoadsNoLibraryFromTheWorkingDirectory) {
    const std::string program = cli::environment("HPCAI500_BINARY");
    const cli::TemporaryFolder folder;
    std::istringstream libraries(cli::execute_in(folder.path(), {"ldd", program}).out);
    int planted = 0;
    for (std::string line; std::getline(libraries, line);) {
        std::string name, arrow;
        std::istringstream(line) >> name >> arrow;
        if (arrow != "=>") continue;
        write(folder / name, "no library");
        ++planted;
    }
    EXPECT_GT(planted, 5);
    const Outcome outcome = cli::execute_in(folder.path(), {program, "--version"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
}

constexpr const char* kWeatherConfig = R"(
workload:
  {kind: climate_segmentation, model: segmentation_net, classes: 4, image_size: 64, image_width: 96,
   channels: 16}
bagging: {M: 2, P_degree: 1, aggregation: soft_vote, out_of_bag: false}
data: {kind: climate_hdf5, path: train.h5, validation_path: test.h5}
device: {kind: cpu, threads: 1}
)";

class DoctorOfALaunch : public ::testing::Test {
protected:
    void SetUp() override {
        write(folder_ / "tiny.yaml", kConfig);
        fs::create_directories(folder_ / "set/train");
        fs::create_directories(folder_ / "set/val");
    }

    /// The output has each finding on one line.
    Outcome doctor(int ranks, const std::vector<std::string>& options) const {
        std::vector<std::string> words{cli::environment("HPCAI500_MPIRUN"),
                                       "--bind-to",
                                       "none",
                                       "-np",
                                       std::to_string(ranks),
                                       cli::environment("HPCAI500_BINARY"),
                                       "doctor",
                                       "--config",
                                       "tiny.yaml"};
        words.insert(words.end(), options.begin(), options.end());
        Outcome outcome = cli::execute_in(folder_.path(), words);
        outcome.out = std::regex_replace(outcome.out, std::regex("\n {18}"), " ");
        return outcome;
    }

    const cli::TemporaryFolder folder_;
};

TEST_F(DoctorOfALaunch, FindsThatAllRanksComputeTheSameBitsAndLeavesNoFiles) {
    const Outcome outcome = doctor(2, {"--golden"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("\nlayout    ok      M=2 x P_degree=1\n"), std::string::npos)
        << outcome.out;
    EXPECT_NE(outcome.out.find("\ndata      ok      the paths that data.kind image_folder reads "
                               "exist; no data was read\n"),
              std::string::npos)
        << outcome.out;
    EXPECT_NE(outcome.out.find("\ngolden    ok      all ranks have the result "), std::string::npos)
        << outcome.out;
    EXPECT_EQ(outcome.error.find("doctor 2/8: configuration"), std::string::npos)
        << "a line about a short check: " << outcome.error;
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 2);
}

TEST_F(DoctorOfALaunch, GivesTheCommandLineForTheRanksThatAreNeeded) {
    const Outcome outcome = doctor(1, {});
    EXPECT_EQ(outcome.exit_code, 3) << outcome.error;
    EXPECT_NE(outcome.out.find("\nlayout    WRONG   bagging.M=2 x bagging.P_degree=1 needs 2 ranks "
                               "(eq. 5), got 1; start with `mpirun -np 2`"),
              std::string::npos)
        << outcome.out;
}

TEST_F(DoctorOfALaunch, NamesAnOutputThatCannotBeWritten) {
    const Outcome outcome = doctor(2, {"--output", "/proc/results"});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.error;
    EXPECT_NE(outcome.out.find("\noutput    WRONG   rank 0 on "), std::string::npos) << outcome.out;
}

TEST_F(DoctorOfALaunch, FindsAnOutputThatARunWouldReject) {
    fs::create_directories(folder_ / "full");
    write(folder_ / "full/file", "kept");
    for (const char* output : {"tiny.yaml", "full"}) {
        const Outcome outcome = doctor(2, {"--output", output});
        EXPECT_EQ(outcome.exit_code, 2) << outcome.error;
        EXPECT_NE(outcome.out.find(std::string("\noutput    WRONG   output directory ") + output +
                                   ": exists and is not an empty directory\n"),
                  std::string::npos)
            << outcome.out;
    }
    fs::remove(folder_ / "full/file");
    EXPECT_EQ(doctor(2, {"--output", "full"}).exit_code, 0);
}

TEST_F(DoctorOfALaunch, FindsDataThatAreNotThere) {
    fs::remove(folder_ / "set/val");
    const Outcome outcome = doctor(2, {});
    EXPECT_EQ(outcome.exit_code, 4) << outcome.error;
    EXPECT_NE(
        outcome.out.find("\ndata      WRONG   tiny.yaml:4:62: data.validation_path: 'set/val'"),
        std::string::npos)
        << outcome.out;
}

TEST_F(DoctorOfALaunch, OpensFilesOfWeather) {
    write(folder_ / "tiny.yaml", kWeatherConfig);
    for (const char* file : {"train.h5", "test.h5"})
        cli::run_in(folder_.path(), {"data", "generate", "climate", "--output", file, "--samples",
                                     "2", "--height", "64", "--width", "96"});
    const Outcome good = doctor(2, {});
    EXPECT_EQ(good.exit_code, 0) << good.error;
    EXPECT_NE(good.out.find("\ndata      ok      2 training and 2 test samples of 64 x 96 "
                            "pixels; their fields were not read\n"),
              std::string::npos)
        << good.out;
    write(folder_ / "test.h5", "no weather");
    const Outcome bad = doctor(2, {});
    EXPECT_EQ(bad.exit_code, 4) << bad.error;
    EXPECT_NE(bad.out.find("\ndata      WRONG   'test.h5'"), std::string::npos) << bad.out;
}

TEST_F(DoctorOfALaunch, RejectsARankThatIsAloneInItsLaunch) {
    const Outcome outcome =
        cli::run_in(folder_.path(), {"doctor", "--config", "tiny.yaml"}, {"SLURM_NTASKS=4"});
    EXPECT_EQ(outcome.exit_code, 3) << outcome.error;
    EXPECT_NE(outcome.error.find("mpirun -np 4 hpcai500 doctor --config tiny.yaml"),
              std::string::npos)
        << outcome.error;
}

}  // namespace
}  // namespace hpcai::end_to_end
