// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include <hpcai/report/csv.hpp>
#include <hpcai/storage/safetensors.hpp>
#include <hpcai/tensor/half.hpp>

#include "launch.hpp"

/// Complete runs with device.kind cuda without a GPU. The program of tests/stand_in uses the real
/// kernels and host code on an emulated CUDA runtime, with plain loops in place of cuDNN and
/// cuBLASLt.
namespace hpcai::end_to_end {
namespace {

/// Tolerance of numbers near 0.25 after three steps. A ReLU may switch at its kink, as on some
/// CPUs, with a difference of 1e-4.
constexpr double kTolerance = 1e-3;

class StandInGpu : public testing::Test {
protected:
    void SetUp() override {
        const char* folder = std::getenv("HPCAI500_STAND_IN");
        if (folder == nullptr || *folder == '\0') GTEST_SKIP() << "built without CUDA's headers";
        stand_in_ = folder;
        make_pictures(folder_.path());
        write(folder_ / "tiny.yaml", kConfig);
    }

    /// One base model, trained by `ranks` ranks on GPUs if `output` begins with "gpu", else on
    /// CPUs.
    Outcome train(const std::string& output, int ranks, const std::string& precision,
                  const std::vector<std::string>& further = {}) const {
        const bool on_gpu = output.starts_with("gpu");
        Launch launch{folder_.path(), ranks};
        launch.output = output;
        launch.changes = {"bagging.M=1", "bagging.P_degree=" + std::to_string(ranks),
                          "training.precision=" + precision, "device.autotune=false",
                          on_gpu ? "device.kind=cuda" : "device.kind=cpu"};
        launch.changes.insert(launch.changes.end(), further.begin(), further.end());
        if (on_gpu) {
            launch.program = (stand_in_ / "hpcai500").string();
            launch.options = {"env", "LD_LIBRARY_PATH=" + stand_in_.string()};
            if (output.ends_with("_nccl")) {
                launch.options.emplace_back("HPCAI500_STAND_IN_PER_RANK=1");
            }
        }
        return run(launch);
    }

    std::vector<float> predictions(const std::string& output) const {
        const storage::NpyArray array =
            storage::read_npy(folder_ / output / "groups/0/predictions.npy");
        const auto values = array.as<float>();
        return {values.begin(), values.end()};
    }

    /// Returns the largest difference between the softmax outputs of two runs.
    double difference(const std::string& one, const std::string& other) const {
        const std::vector<float> a = predictions(one), b = predictions(other);
        EXPECT_EQ(a.size(), b.size());
        double largest = 0;
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
            largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
        }
        return largest;
    }

    storage::TemporaryFolder folder_;
    fs::path stand_in_;
};

TEST_F(StandInGpu, TrainsTheModelThatTheCpuTrains) {
    for (const std::string output : {"gpu", "cpu"}) {
        const Outcome outcome = train(output, 1, "fp32");
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    }
    EXPECT_LE(difference("gpu", "cpu"), kTolerance);
    const nlohmann::json record = json_of(folder_ / "gpu/result.json");
    EXPECT_EQ(record["work"]["iterations"], 3);
    const std::string device = json_of(folder_ / "gpu/environment.json")["device_of_rank_0"];
    EXPECT_NE(device.find("stood in for"), std::string::npos) << device;
    EXPECT_EQ(record["topology"]["map"][0]["device"], device);
}

TEST_F(StandInGpu, TimesThePhasesOfTheStepBeforeEachReading) {
    const Outcome outcome = train("gpu", 1, "fp32", {"run.trace=true"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    const auto steps = report::steps_from_csv(text_of(folder_ / "gpu/groups/0/steps.csv"));
    ASSERT_EQ(steps.size(), 3U);  // only the last one is read
    EXPECT_TRUE(std::isnan(steps[1].phases.forward));
    EXPECT_TRUE(std::isnan(steps[1].loss));
    EXPECT_GT(steps[2].phases.forward, 0);
    EXPECT_GT(steps[2].phases.backward, 0);
    EXPECT_GT(steps[2].loss, 0);
    const nlohmann::json time = json_of(folder_ / "gpu/result.json")["time_breakdown"];
    EXPECT_EQ(time["forward"]["median"].get<double>(), steps[2].phases.forward);
    EXPECT_EQ(time["other"]["median_reason"], "the host's clock does not show when a GPU waits");
    EXPECT_TRUE(json_of(folder_ / "gpu/groups/0/trace.json")["traceEvents"].is_array());
}

TEST_F(StandInGpu, RejectsPartsOfLayers) {
    const Outcome outcome = train("gpu", 2, "fp32", {"parallel.mode=model"});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_NE(outcome.error.find(
                  "as device.kind cuda does not support shards of layers yet, got 2 (auto)"),
              std::string::npos)
        << outcome.error;
}

TEST_F(StandInGpu, TakesStatisticsOfSeveralRanks) {
    const Outcome outcome = train("gpu", 2, "fp32", {"training.batch_norm_samples=8"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    ASSERT_EQ(train("cpu", 1, "fp32").exit_code, 0);
    EXPECT_LE(difference("gpu", "cpu"), kTolerance);
    const nlohmann::json sums = json_of(folder_ / "gpu/result.json")["communication"];
    EXPECT_EQ(sums["statistics_ranks"], 2);
    EXPECT_EQ(sums["statistics_sums_per_step"], 2 * 53);
    const std::string log = text_of(folder_ / "gpu/groups/0/log.txt");
    EXPECT_NE(log.find("gradients are reduced by mpi through host memory"), std::string::npos)
        << log;
}

TEST_F(StandInGpu, IsSharedByRanksThatSumThroughTheHost) {
    const Outcome outcome = train("gpu", 2, "mixed");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    ASSERT_EQ(train("cpu", 2, "fp32").exit_code, 0);
    EXPECT_LE(difference("gpu", "cpu"), 0.02);  // fp16
    const std::string log = text_of(folder_ / "gpu/groups/0/log.txt");
    EXPECT_NE(log.find("gradients are reduced by mpi through host memory"), std::string::npos)
        << log;
    EXPECT_EQ(json_of(folder_ / "gpu/result.json")["work"]["groups"][0]["audit"]["passed"], 1);
}

TEST_F(StandInGpu, TrainsWithWeightsInFp16Alone) {
    const Outcome outcome =
        train("gpu", 2, "fp16", {"training.batch_size=24", "parallel.micro_batches=2"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    const nlohmann::json record = json_of(folder_ / "gpu/result.json");
    EXPECT_EQ(record["workload"]["precision"], "fp16");
    EXPECT_EQ(record["work"]["groups"][0]["audit"]["passed"], 1);
    const auto weights = storage::read_safetensors(folder_ / "gpu/groups/0/weights.safetensors");
    std::size_t numbers = 0, others = 0;
    for (const storage::StoredTensor& weight : weights.tensors()) {
        if (weight.type != storage::ElementType::f32 ||
            weight.name.find("running_") != std::string::npos)
            continue;
        std::vector<float> values(weight.bytes.size() / sizeof(float));
        std::memcpy(values.data(), weight.bytes.data(), weight.bytes.size());
        numbers += values.size();
        others += static_cast<std::size_t>(std::ranges::count_if(
            values, [](float value) { return tensor::from_f16(tensor::to_f16(value)) != value; }));
    }
    EXPECT_GT(numbers, 350'000u);
    EXPECT_EQ(others, 0u) << "are no numbers of fp16";
}

/// The third step is recorded.
TEST_F(StandInGpu, IsOneOfTwoWhoseGradientsNcclCarriesAsMpiDoes) {
    const std::vector<std::string> sums{"communication.algorithm=torus_2d",
                                        "communication.precision=int8"};
    for (const std::string output : {"gpu_nccl", "gpu_mpi"}) {
        std::vector<std::string> changes = sums;
        changes.push_back("communication.backend=" + output.substr(4));
        const Outcome outcome = train(output, 2, "fp32", changes);
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    }
    EXPECT_EQ(predictions("gpu_nccl"), predictions("gpu_mpi"));
    const nlohmann::json by_nccl = json_of(folder_ / "gpu_nccl/result.json")["communication"];
    const nlohmann::json by_mpi = json_of(folder_ / "gpu_mpi/result.json")["communication"];
    EXPECT_EQ(by_nccl["backend"], "nccl");
    EXPECT_EQ(by_mpi["backend"], "mpi");
    EXPECT_EQ(by_nccl["sent_bytes_per_step"], by_mpi["sent_bytes_per_step"]);
    EXPECT_GT(by_nccl["sent_bytes_per_step"], 0);
}

TEST_F(StandInGpu, IsSummedForByNcclItselfUnlessBitsMustRepeat) {
    for (const bool is_deterministic : {false, true}) {
        const std::string output = is_deterministic ? "gpu_again_nccl" : "gpu_nccl";
        const Outcome outcome = train(
            output, 2, "fp32",
            {"training.batch_size=24", is_deterministic ? "run.deterministic=true" : "run.seed=1"});
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
        const nlohmann::json sums = json_of(folder_ / output / "result.json")["communication"];
        EXPECT_EQ(sums["backend"], "nccl");
        EXPECT_EQ(sums["sent_bytes_per_step"].is_null(), !is_deterministic) << sums;
        const std::string log = text_of(folder_ / output / "groups/0/log.txt");
        EXPECT_EQ(log.find(", all_reduce in fp32") != std::string::npos, is_deterministic) << log;
    }
}

TEST_F(StandInGpu, TrainsInStagesWhatOneCpuTrainsWithTheSameMicroBatches) {
    const std::string parts = "parallel.micro_batches=2";
    ASSERT_EQ(train("cpu", 1, "fp32", {parts}).exit_code, 0);
    const Outcome outcome = train("gpu", 2, "fp32", {parts, "parallel.mode=pipeline"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_LE(difference("gpu", "cpu"), kTolerance);
}

TEST_F(StandInGpu, TrainsOnResidentPicturesAsOnThoseThatTheHostPrepares) {
    const std::vector<std::string> varied{"data.vertical_flip_probability=0.5",
                                          "bagging.sampler=bootstrap"};
    std::vector<std::string> resident = varied, decoded_whole = varied;
    resident.push_back("data.resident_mib=1");
    decoded_whole.push_back("data.decoded_cache_mib=1");
    ASSERT_EQ(train("gpu_resident", 1, "fp32", resident).exit_code, 0);
    ASSERT_EQ(train("gpu_prepared", 1, "fp32", decoded_whole).exit_code, 0);
    EXPECT_EQ(predictions("gpu_resident"), predictions("gpu_prepared"));
    const std::string log = text_of(folder_ / "gpu_resident/groups/0/log.txt");
    EXPECT_NE(log.find("the GPU's memory holds "), std::string::npos) << log;
    EXPECT_EQ(log.find("holds 0 training images"), std::string::npos) << log;
}

TEST_F(StandInGpu, TrainsOnPicturesThatItDecodesAsOnThoseOfTheHost) {
    const std::vector<std::string> varied{"data.vertical_flip_probability=0.5"};
    std::vector<std::string> by_gpu = varied, decoded_whole = varied;
    by_gpu.push_back("data.decoder=gpu");
    decoded_whole.push_back("data.decoded_cache_mib=1");
    ASSERT_EQ(train("gpu_decoded", 1, "fp32", by_gpu).exit_code, 0);
    ASSERT_EQ(train("gpu_prepared", 1, "fp32", decoded_whole).exit_code, 0);
    EXPECT_EQ(predictions("gpu_decoded"), predictions("gpu_prepared"));
    const std::string log = text_of(folder_ / "gpu_decoded/groups/0/log.txt");
    EXPECT_NE(log.find("the GPU decoded 24 training images of rank 0, the CPU 0"),
              std::string::npos)
        << log;
    const std::string device =
        json_of(folder_ / "gpu_decoded/environment.json")["device_of_rank_0"];
    EXPECT_TRUE(device.ends_with(", nvJPEG 13.0.0 (hardware)")) << device;
    const Outcome replay =
        cli::run_in(folder_.path(), {"verify", "gpu_decoded", "--data", "set", "--replay", "3"});
    EXPECT_EQ(replay.exit_code, 2);
    EXPECT_NE(replay.error.find("--replay: expected a run with data.decoder cpu, got gpu"),
              std::string::npos)
        << replay.error;
}

TEST_F(StandInGpu, HasItsDecoderMeasuredBesidesThatOfTheHost) {
    const Outcome outcome = cli::execute_in(
        folder_.path(),
        {"env", "LD_LIBRARY_PATH=" + stand_in_.string(), (stand_in_ / "hpcai500").string(),
         "roofline", "--config", "tiny.yaml", "--input", "set/train", "--device", "cuda",
         "--seconds", "1", "--set", "run.loss_steps=1", "--set", "device.autotune=false"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    for (const char* text :
         {", nvJPEG 13.0.0 (hardware)\n", "\nimages, decoded by GPU         1     64 ",
          "\nimages, decoded by GPU         2    400 ",
          "\nbatches, decoder cpu           1      8 ",
          "\nbatches, decoder gpu           1      8 ", "\nWith data.decoder gpu, a step "}) {
        EXPECT_NE(outcome.out.find(text), std::string::npos) << text << " in\n" << outcome.out;
    }
}

TEST_F(StandInGpu, IsNeededForResidentPictures) {
    const Outcome on_cpu = train("cpu", 1, "fp32", {"data.resident_mib=1"});
    EXPECT_EQ(on_cpu.exit_code, 2);
    EXPECT_TRUE(messages(on_cpu).at(0).ends_with(
        "data.resident_mib: expected 0, as device.kind is cpu (data.decoded_cache_mib keeps "
        "images in host memory), got '1'"))
        << on_cpu.error;
    EXPECT_FALSE(fs::exists(folder_ / "cpu"));
}

TEST_F(StandInGpu, ReportsThatResidentPicturesDoNotFit) {
    const Outcome outcome = train("gpu", 1, "fp32", {"data.resident_mib=2147483647"});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.error;
    EXPECT_TRUE(messages(outcome).at(0).starts_with(
        "hpcai500: --set data.resident_mib=2147483647: data.resident_mib: 2147483647 MiB "))
        << outcome.error;
    EXPECT_FALSE(fs::exists(folder_ / "gpu"));
}

}  // namespace
}  // namespace hpcai::end_to_end
