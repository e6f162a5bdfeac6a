// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/graph/graph.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/plan/data_sampler.hpp>
#include <hpcai/training/initialize.hpp>
#include <hpcai/training/trainer.hpp>
#include <hpcai/training/weights_file.hpp>

#include "launch.hpp"
#include "models/networks.hpp"

/// A run of two groups with no default settings, compared with the same training composed of the
/// modules here. Equal bits of the models prove each group's seed, bootstrap, order, initial
/// weights and settings.
namespace hpcai::end_to_end {
namespace {

constexpr std::uint64_t kRunSeed = 3;
constexpr int kEpochs = 2;

std::vector<std::string> changes(const fs::path& folder) {
    return {"run.deterministic=true",
            "workload.epochs=2",
            "workload.model=resnet50_v1",
            "workload.penalty_exponent=3",
            "workload.target_quality=0.3",
            "bagging.sampler=poisson",
            "data.path=" + (folder / "set/train").string(),
            "data.validation_path=" + (folder / "set/val").string(),
            "data.mean=[0.4, 0.5, 0.6]",
            "data.standard_deviation=[0.3, 0.2, 0.1]",
            "training.schedule=polynomial",
            "training.nesterov=true",
            "training.zero_gamma=false",
            "training.label_smoothing=0.2",
            "training.batch_norm_momentum=0.3",
            "training.batch_norm_samples=4"};
}

models::ResNet50 options(std::int64_t batch) {
    models::ResNet50 options;
    options.batch = batch;
    options.image_size = 32;
    options.channels = 3;
    options.classes = 4;
    options.backbone.stride_on_3x3 = false;
    options.backbone.zero_gamma = false;
    options.label_smoothing = 0.2;
    options.backbone.norm.momentum = 0.3;
    options.backbone.norm.statistics_samples = batch == 1 ? 0 : 4;
    options.input.mean = {0.4, 0.5, 0.6};
    options.input.standard_deviation = {0.3, 0.2, 0.1};
    return options;
}

class RunByHand : public testing::Test {
protected:
    static void SetUpTestSuite() {
        folder_ = new storage::TemporaryFolder();
        make_pictures(folder_->path());
        write(*folder_ / "tiny.yaml", kResNet50Config);
        const Outcome outcome = run_ranks(folder_->path(), 2, changes(folder_->path()));
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    }
    static void TearDownTestSuite() { delete folder_; }

    static nlohmann::json record() { return json_of(*folder_ / "result/result.json"); }

    /// Returns the expected digest of the model of group `number`.
    static std::string digest_of(std::uint32_t number) {
        const auto self = comm::make_self_communicator();
        const config::Config config = config::parse(kResNet50Config, "", changes(folder_->path()));
        const data::SampleSets samples = data::make_sample_sets(config, *self);
        const auto device = device::make_cpu_device({.threads = 1, .deterministic = true});
        const graph::Graph graph = models::make_resnet50(options(8));
        graph::ParameterStore store(graph, *device);
        training::initialize(graph, kRunSeed, number, store);
        graph::Network network(graph::fuse(graph), *device, store, {});
        const plan::DataSampler sampler(config.bagging, kRunSeed, 24);
        data::TrainingSource source(samples.training, {.batch_size = 8}, kRunSeed, number);
        const auto steps = static_cast<std::int64_t>(sampler.in_bag_size(number) / 8);
        const auto reducer = comm::make_mpi_reducer(*self);
        training::Trainer trainer({config, network, steps, *reducer}, *device, store, *self);
        for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
            source.begin_epoch(epoch, sampler.epoch_order(number, epoch));
            trainer.train_epoch(static_cast<int>(epoch), source, [](const auto&) {});
        }
        return training::training_digest(graph, store);
    }

    static storage::TemporaryFolder* folder_;
};

storage::TemporaryFolder* RunByHand::folder_ = nullptr;

TEST_F(RunByHand, HasTheBitsOfEachGroupsModel) {
    const nlohmann::json digests = record()["training_digest"];
    ASSERT_EQ(digests.size(), 2U);
    EXPECT_EQ(digests[0], digest_of(0));
    EXPECT_EQ(digests[1], digest_of(1));
}

TEST_F(RunByHand, HasTheFlopsAndTheScoreOfItsSettings) {
    const nlohmann::json all = record();
    const metrics::FlopsLedger ledger(models::make_resnet50(options(1)));
    EXPECT_EQ(all["flops"]["training_per_sample"], ledger.training_per_sample(ops::Ledger::table3));
    EXPECT_EQ(all["flops"]["forward_per_sample"], ledger.forward_per_sample(ops::Ledger::table3));
    const double penalty = std::pow(all["quality"]["ensemble"].get<double>() / 0.3, 3);
    EXPECT_NEAR(all["scores"]["penalty_coefficient"], penalty, 1e-12);
}

}  // namespace
}  // namespace hpcai::end_to_end
