// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include "launch.hpp"

/// Wrong input under mpirun: mpirun's exit code, one clear message, no files.
namespace hpcai::end_to_end {
namespace {

class RefusedStart : public testing::Test {
protected:
    void SetUp() override {
        make_pictures(folder_.path());
        write(folder_ / "tiny.yaml", kConfig);
    }

    /// Expects that `outcome` has `exit_code` and one message with all `parts`, and that the folder
    /// has only the test's files.
    void expect_refused(const Outcome& outcome, int exit_code,
                        const std::vector<std::string>& parts) const {
        EXPECT_EQ(outcome.exit_code, exit_code) << outcome.error;
        EXPECT_EQ(outcome.out, "");
        const std::vector<std::string> lines = messages(outcome);
        ASSERT_EQ(lines.size(), 1U) << outcome.error;
        for (const std::string& part : parts) {
            EXPECT_NE(lines[0].find(part), std::string::npos) << lines[0];
        }
        EXPECT_FALSE(fs::exists(folder_ / "result")) << lines[0];
        EXPECT_FALSE(fs::exists(folder_ / "results")) << lines[0];
    }

    storage::TemporaryFolder folder_;
};

TEST_F(RefusedStart, NamesAnUnknownKeyWithItsPlaceAndTheNearestOne) {
    std::string config = kConfig;
    config.replace(config.find("batch_size"), 10, "batchsize");
    write(folder_ / "wrong.yaml", config);
    expect_refused(run_ranks(folder_.path(), 2, {}, "result", "wrong.yaml"), 2,
                   {"wrong.yaml:5:12", "batchsize", "batch_size"});
}

TEST_F(RefusedStart, NamesAKeyThatComesTwiceWithBothPlaces) {
    write(folder_ / "wrong.yaml", std::string(kConfig) + "run: {name: again}\n");
    expect_refused(run_ranks(folder_.path(), 2, {}, "result", "wrong.yaml"), 2,
                   {"wrong.yaml:8:1", "run", "line 1"});
}

TEST_F(RefusedStart, NamesTheRanksThatTheLayoutNeeds) {
    expect_refused(run_ranks(folder_.path(), 3, {}), 3, {"bagging.M=2", "needs 2 ranks", "got 3"});
}

TEST_F(RefusedStart, NamesAFolderThatIsMissing) {
    expect_refused(run_ranks(folder_.path(), 2, {"data.validation_path=set/test"}), 4,
                   {"--set data.validation_path=set/test: data.validation_path: 'set/test' does"});
}

TEST_F(RefusedStart, NamesAClassWithoutPictures) {
    const fs::path first = fs::directory_iterator(folder_ / "set/train")->path();
    for (const auto& picture : fs::directory_iterator(first)) fs::remove(picture);
    expect_refused(run_ranks(folder_.path(), 2, {}), 4,
                   {"set/train", first.filename().string(), "expected a regular file *.jpg"});
}

TEST_F(RefusedStart, NamesAnOutputThatCannotBeWritten) {
    expect_refused(run_ranks(folder_.path(), 2, {}, "/proc/none/result"), 2, {"/proc/none/result"});
}

TEST_F(RefusedStart, LeavesAnOutputThatIsNotEmptyAsItIs) {
    fs::create_directory(folder_ / "taken");
    write(folder_ / "taken/note.txt", "mine");
    expect_refused(run_ranks(folder_.path(), 2, {}, "taken"), 2, {"taken", "not an empty"});
    EXPECT_EQ(text_of(folder_ / "taken/note.txt"), "mine");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "taken"), {}), 1);
}

TEST_F(RefusedStart, NamesInitialWeightsThatDoNotFit) {
    write(folder_ / "old.safetensors", "no weights");
    expect_refused(run_ranks(folder_.path(), 2, {"training.initial_weights=old.safetensors"}), 4,
                   {"old.safetensors: training.initial_weights: ", "'old.safetensors'"});
}

TEST_F(RefusedStart, ReportsWhatAMachineWithoutGpuLacks) {
    if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY); driver != nullptr) {
        dlclose(driver);
        GTEST_SKIP() << "this machine has NVIDIA's driver";
    }
    expect_refused(run_ranks(folder_.path(), 2, {"device.kind=cuda"}), 2,
                   {"device.kind", "NVIDIA driver", "libcuda.so.1"});
}

TEST_F(RefusedStart, RejectsWhatOnlyOtherDevicesHave) {
    expect_refused(run_ranks(folder_.path(), 2, {"device.kind=cpu", "training.precision=mixed"}), 2,
                   {"training.precision", "'mixed'", "fp32"});
    expect_refused(run({.folder = folder_.path(),
                        .ranks = 2,
                        .changes = {"device.kind=cpu", "training.precision=int8"},
                        .options = {"env", "DNNL_MAX_CPU_ISA=AVX2"}}),
                   2, {"training.precision", "'int8'", "fp32"});
    expect_refused(run_ranks(folder_.path(), 2, {"device.kind=cpu", "communication.backend=nccl"}),
                   2, {"communication.backend", "'nccl'"});
}

TEST_F(RefusedStart, NamesHowManyPartsALayerCanHaveBeforeItLooksForSamples) {
    expect_refused(
        run_ranks(folder_.path(), 4,
                  {"bagging.M=1", "bagging.P_degree=4", "parallel.mode=model", "workload.classes=2",
                   "data.path=nowhere"}),
        2, {"parallel.model_degree", "expected 1 to 2, the number of channels of fc, got 4"});
}

TEST_F(RefusedStart, RejectsInt8InPartsThatHaveNone) {
    expect_refused(run_ranks(folder_.path(), 3,
                             {"bagging.M=1", "bagging.P_degree=3", "parallel.mode=model",
                              "training.precision=int8", "workload.backbone_width=64"}),
                   2,
                   {"parallel.model_degree", "int8", "1 stage x 3 shards have none, got 3 (auto)"});
}

TEST_F(RefusedStart, RequiresTwoValuesOfEachChannelForAVariance) {
    expect_refused(
        run_ranks(folder_.path(), 2, {"training.batch_norm_samples=1"}), 2,
        {"training.batch_norm_samples", "layer4.0.bn2", "1 x 1 pixels", "no variance;", "got 1"});
}

TEST_F(RefusedStart, NamesTheRankThatRunsAnotherProgram) {
    const std::string program = cli::environment("HPCAI500_BINARY");
    const std::string newer = folder_ / "newer";
    fs::copy_file(program, newer);
    std::ofstream(newer, std::ios::binary | std::ios::app) << "one byte is enough";
    std::vector<std::string> words{cli::environment("HPCAI500_MPIRUN"), "--bind-to", "none"};
    for (const auto& [ranks, one] : {std::pair{"2", program}, {"1", newer}}) {
        words.insert(words.end(), {"-np", ranks, one, "run", "--config", "tiny.yaml", "--output",
                                   "result", "--set", "bagging.M=3", ":"});
    }
    words.pop_back();
    expect_refused(cli::execute_in(folder_.path(), words), 3,
                   {"the program differs from that of the other ranks: rank 2 on ",
                    "; start the same executable on all nodes"});
}

TEST_F(RefusedStart, RequiresALauncherUnderSlurm) {
    const Outcome outcome = cli::run_in(
        folder_.path(), {"run", "--config", "tiny.yaml", "--output", "result"}, {"SLURM_NTASKS=4"});
    expect_refused(outcome, 3, {"SLURM_NTASKS=4"});
    EXPECT_NE(outcome.error.find("mpirun -np 4 hpcai500 run"), std::string::npos) << outcome.error;
}

}  // namespace
}  // namespace hpcai::end_to_end
