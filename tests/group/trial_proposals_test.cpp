// SPDX-License-Identifier: Apache-2.0
#include "group/trial_proposals.hpp"

#include <gtest/gtest.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/graph/parameter_store.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/recorded_search.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/training/weights_file.hpp>
#include <hpcai/verification/search.hpp>

#include "storage/temporary_folder.hpp"

namespace hpcai::group {
namespace {

constexpr const char* kSearch = R"(run: {seed: 3, group_timeout_seconds: 1}
workload: {kind: architecture_search, classes: 4, image_size: 32, backbone_width: 8, epochs: 2}
search: {trials: 5, epochs: [1, 2], root_blocks: [1, 1, 1, 1]}
bagging: {M: 2, P_degree: 1, sampler: none, out_of_bag: false}
data: {kind: image_folder, path: set/train, validation_path: set/val}
training: {batch_size: 4, learning_rate: 0.05, schedule: constant, warmup_epochs: 0}
)";

class Silent final : public Logger {
public:
    void write(Severity severity, std::string_view message) override {
        if (severity != Severity::info) warnings += std::string(message) + "\n";
    }
    std::string warnings;
};

/// The leader of group 0 of two. Trials are not trained: their weights are the initial ones.
class TrialProposalsTest : public testing::Test {
protected:
    void SetUp() override {
        for (const int group : {0, 1})
            std::filesystem::create_directories(
                results::trial_weights(folder_.path(), group, 0).parent_path());
        start();
    }

    /// Starts a launch; with `overrides`, of another configuration.
    void start(const std::vector<std::string>& overrides = {}) {
        proposals_.reset();
        const TopologyRecord topology{
            2, 2, 1, 1, {{0, 0, 0, 0, 0, 1, "a", "cpu"}, {1, 1, 0, 0, 1, 1, "a", "cpu"}}};
        context_.emplace(results::context_of(folder_.path(), topology,
                                             config::parse(kSearch, "f.yaml", overrides)));
        proposals_.emplace(*context_, log_, memory_bytes_, "fp32",
                           [this] { return since_begin_.seconds() < stop_seconds_; });
    }

    ProposedTrial propose() { return proposals_->next()->proposed; }

    /// Stores a trial of `group` and its weights.
    void complete(double accuracy) {
        const ProposedTrial& trial = proposals_->own().trials().back().proposed;
        store_weights(trial.edits, trial.sequence);
        proposals_->finish(finished(trial.sequence, {accuracy}));
    }

    /// Completes the root, then stores `count` failed trials.
    void fail_after_the_root(int count) {
        context_->config.search.trials = 100;
        propose();
        complete(0.5);
        for (int failed = 0; failed < count; ++failed) {
            EXPECT_FALSE(proposals_->is_over());
            propose();
            proposals_->fail("diverged", failed + 2);
        }
    }

    void store_weights(const std::vector<EditRecord>& edits, int sequence) {
        const auto graph = morphs::apply_all(proposals_->root(), search::morphs_of(edits));
        const auto device = device::make_cpu_device({});
        graph::ParameterStore store(graph, *device);
        training::write_weights(results::trial_weights(folder_.path(), 0, sequence), graph, store,
                                1);
    }

    static FinishedTrial finished(int sequence, std::vector<double> accuracy) {
        FinishedTrial trial;
        trial.sequence = sequence;
        trial.end_seconds = sequence + 1;
        trial.epoch_seconds.assign(accuracy.size(), sequence + 1);
        trial.digest = std::string(64, 'd');
        trial.accuracy = std::move(accuracy);
        return trial;
    }

    /// Appends a finished trial with `edits` to the history of the other group.
    void add_to_other(std::vector<EditRecord> edits) {
        search::HistoryWriter writer(1, other_file());
        ProposedTrial trial;
        trial.sequence = static_cast<int>(writer.history().trials().size());
        trial.edits = std::move(edits);
        trial.hyper_parameters = {{"learning_rate", 0.05}, {"weight_decay", 1e-4}};
        trial.seen = {0, writer.history().lines()};
        trial.memory_bytes = memory_bytes_;
        writer.append(trial);
        writer.append(finished(trial.sequence, {0.9}));
    }

    std::filesystem::path other_file() const {
        return results::group_directory(folder_.path(), 1) / kTrialsName;
    }

    storage::TemporaryFolder folder_;
    Silent log_;
    Stopwatch since_begin_;
    std::int64_t memory_bytes_ = 1 << 30;
    double stop_seconds_ = 1e9;  // after which no proposal may wait
    std::optional<context::RunContext> context_;
    std::optional<TrialProposals> proposals_;
};

TEST_F(TrialProposalsTest, GoesOnAfterAFailedTrial) {
    propose();
    complete(0.5);
    EXPECT_EQ(proposals_->end_seconds(), 1);
    propose();
    EXPECT_FALSE(proposals_->end_seconds()) << "the last trial has not finished";
    proposals_->fail("diverged", 7);
    EXPECT_EQ(proposals_->end_seconds(), 7);
    context_->config.search.duration_seconds = 7;
    EXPECT_TRUE(proposals_->is_over()) << "the last trial ended at the limit";
    context_->config.search.duration_seconds = 8;
    const search::Trial failed = proposals_->own().trials().back();
    EXPECT_EQ(failed.finished->state, TrialState::failed);
    EXPECT_EQ(failed.finished->reason, "diverged");
    EXPECT_EQ(failed.finished->begin_seconds, 1) << "the end of the trial before";
    for (int trial = 2; trial < 6; ++trial) {
        EXPECT_FALSE(proposals_->is_over());
        EXPECT_EQ(propose().sequence, trial);
        EXPECT_NE(proposals_->own().trials().back().proposed.parent, (TrialId{0, 1}));
        complete(0.1);
    }
    EXPECT_TRUE(proposals_->is_over()) << "5 trials have completed";
    search::check_proposals(verification::search_basis(context_->config),
                            std::vector{proposals_->own(), search::History(1, "none")});
}

TEST_F(TrialProposalsTest, FailsARepeatedTrialWithoutParent) {
    propose();
    complete(0.5);
    EXPECT_EQ(propose().parent, (TrialId{0, 0}));
    start();
    EXPECT_EQ(propose().sequence, 1) << "its parent has weights";
    start();
    std::filesystem::remove(results::trial_weights(folder_.path(), 0, 0));
    const ProposedTrial next = propose();
    EXPECT_EQ(next.sequence, 2);
    EXPECT_TRUE(next.parent.is_root());
    EXPECT_EQ(next.missing, (std::vector<TrialId>{{0, 0}}));
    const FinishedTrial& failed = *proposals_->own().trials()[1].finished;
    EXPECT_EQ(failed.state, TrialState::failed);
    EXPECT_EQ(failed.reason, "the weights of its parent, trial 0 of group 0, are missing");
}

TEST_F(TrialProposalsTest, FailsATrialThatHasEndedTwoLaunches) {
    for (int attempt = 0; attempt < 4; ++attempt) {
        EXPECT_EQ(propose().sequence, 0) << "a search depends on its first trial";
        start();
    }
    propose();
    complete(0.5);
    EXPECT_EQ(propose().sequence, 1);
    proposals_->forget_attempts();
    for (int attempt = 0; attempt < 2; ++attempt) {
        start();
        EXPECT_EQ(propose().sequence, 1);
    }
    start();
    EXPECT_EQ(propose().sequence, 2);
    EXPECT_EQ(proposals_->own().trials()[1].finished->reason,
              "2 launches in a row have ended while they trained it");
}

TEST_F(TrialProposalsTest, EndsAfterManyFailedTrialsInARow) {
    fail_after_the_root(verification::kMaxFailures);
    EXPECT_TRUE(proposals_->is_over());
    EXPECT_EQ(verification::end_reason(proposals_->own()),
              "its last 20 trials failed, at last because diverged");
}

TEST_F(TrialProposalsTest, ProposesNothingIfTheFailureOfTheUnfinishedTrialEndsTheSearch) {
    fail_after_the_root(verification::kMaxFailures - 1);
    propose();
    start({"search.trials=100"});
    propose();
    start({"search.trials=100"});
    EXPECT_FALSE(proposals_->next());
    EXPECT_TRUE(proposals_->is_over());
}

TEST_F(TrialProposalsTest, WaitsForAnActiveGroupUntilItMustStop) {
    add_to_other({});
    propose();
    complete(0.5);
    std::filesystem::rename(other_file(), folder_ / "moved");
    start();
    results::write_progress(folder_.path(), 1, {});
    const double before = since_begin_.seconds();
    stop_seconds_ = before + 2.5;
    EXPECT_FALSE(proposals_->next());
    EXPECT_GT(since_begin_.seconds() - before, 2) << "run.group_timeout_seconds is 1";
}

TEST_F(TrialProposalsTest, TreatsDamagedWeightsAsMissing) {
    propose();
    complete(0.5);
    storage::write_file_durably(results::trial_weights(folder_.path(), 0, 0), "damaged");
    EXPECT_TRUE(propose().parent.is_root());
    EXPECT_NE(log_.warnings.find("weights of trial 0 of group 0"), std::string::npos);
}

TEST_F(TrialProposalsTest, UsesNoLineOfAnotherGroupFromAnImpossibleOneOn) {
    add_to_other({});
    propose();
    complete(0.5);
    add_to_other({{"wider", "no such node", "", 16}});
    add_to_other({});
    EXPECT_EQ(propose().seen, (std::vector<std::int64_t>{2, 2}));
    EXPECT_NE(log_.warnings.find("trials of group 1 cannot be read"), std::string::npos);
    complete(0.6);
    add_to_other({});
    EXPECT_EQ(propose().seen, (std::vector<std::int64_t>{4, 2}));
}

TEST_F(TrialProposalsTest, RequestsNoFewerLinesThanBefore) {
    add_to_other({});
    EXPECT_EQ(propose().seen, (std::vector<std::int64_t>{0, 2}));
    complete(0.5);
    std::filesystem::rename(other_file(), folder_ / "moved");
    start();
    const std::string message = storage::error_of(ExitCode::data, [&] { propose(); });
    EXPECT_NE(message.find("group 1 has not stored 2 legal lines"), std::string::npos) << message;
    std::filesystem::rename(folder_ / "moved", other_file());
    EXPECT_EQ(propose().seen, (std::vector<std::int64_t>{2, 2}));
}

TEST_F(TrialProposalsTest, TrainsTheParentsNetworkIfEveryEditHasTooManyFlops) {
    start({"search.max_flops_factor=1.0000001"});
    propose();
    complete(0.5);
    const ProposedTrial trial = propose();
    EXPECT_EQ(trial.draw, 100);
    EXPECT_TRUE(trial.edits.empty());
    EXPECT_EQ(trial.parent, (TrialId{0, 0}));
}

TEST_F(TrialProposalsTest, TrainsTheParentsNetworkIfEveryEditNeedsTooMuchMemory) {
    const auto limits =
        verification::proposal_limits(context_->config, proposals_->root(), 1, "fp32");
    memory_bytes_ = limits.memory_bytes(proposals_->root());
    start();
    propose();
    complete(0.5);
    EXPECT_EQ(log_.warnings, "");
    EXPECT_EQ(propose().draw, 100);
    EXPECT_TRUE(proposals_->own().trials().back().proposed.edits.empty());
    complete(0.5);
    memory_bytes_ -= 1;
    start();
    EXPECT_NE(log_.warnings.find("search.max_memory_gb"), std::string::npos);
    EXPECT_EQ(propose().draw, 100) << "even the root's network is too large";
    complete(0.5);
    start({"search.max_memory_gb=1"});
    const ProposedTrial trial = propose();
    EXPECT_EQ(trial.draw, 0);
    EXPECT_EQ(trial.edits.size(), 1U);
    EXPECT_EQ(trial.memory_bytes, 1'000'000'000);
}

TEST_F(TrialProposalsTest, BoundsTheMemoryOfEveryNetwork) {
    config::Config config = context_->config;
    config.training.batch_size = 16;
    for (const int states : {1, 2}) {
        if (states == 2) config.training.optimizer = config::Optimizer::adam;
        const auto limits = verification::proposal_limits(config, proposals_->root(), 2, "fp32");
        const auto device = device::make_cpu_device({1});
        std::vector<morphs::Morph> script;
        for (std::size_t edit = 0; edit < 12; ++edit) {
            const auto graph = morphs::apply_all(proposals_->root(), script);
            const auto rows = morphs::apply_all(models::make_model(config, {8}), script);
            graph::ParameterStore store(rows, *device, states);
            const graph::Network network(graph::fuse(rows), *device, store, {});
            const std::size_t needed = store.parameters().size_bytes() * (2 + states) +
                                       network.memory().arena_bytes +
                                       network.memory().prepared_bytes;
            const auto bound = static_cast<double>(limits.memory_bytes(graph));
            EXPECT_LT(static_cast<double>(needed), bound) << edit;
            EXPECT_GT(static_cast<double>(needed), 0.5 * bound) << edit;
            const auto legal = morphs::legal_morphs(graph);
            script.push_back(legal[(29 * edit) % legal.size()]);
        }
    }
}

TEST_F(TrialProposalsTest, EndsBeforeItsEpochsExceedARandomStream) {
    start({"search.trials=0", "search.duration_seconds=9", "search.epochs=[1, 40000]",
           "workload.epochs=40000"});
    propose();
    complete(0.5);
    EXPECT_FALSE(proposals_->is_over());
    const int sequence = propose().sequence;
    store_weights({}, sequence);
    proposals_->finish(finished(sequence, std::vector<double>(40000, 0.5)));
    EXPECT_TRUE(proposals_->is_over());
}

TEST_F(TrialProposalsTest, ReplaysMissingParentsAndTheNumberOfTrials) {
    propose();
    complete(0.5);
    std::filesystem::remove(results::trial_weights(folder_.path(), 0, 0));
    memory_bytes_ = 1 << 29;
    start();
    propose();
    complete(0.5);
    memory_bytes_ = 1 << 30;
    const std::vector<search::Trial> recorded = proposals_->own().trials();
    ASSERT_EQ(recorded[1].proposed.missing, (std::vector<TrialId>{{0, 0}}));
    storage::TemporaryFolder earlier;
    std::filesystem::copy(folder_.path(), earlier.path(), std::filesystem::copy_options::recursive);
    std::filesystem::remove(results::group_directory(folder_.path(), 0) / kTrialsName);
    start({"search.history=recorded", "search.recorded=" + earlier.path().string()});
    for (const int trial : {0, 1}) {
        EXPECT_FALSE(proposals_->is_over());
        EXPECT_TRUE(search::has_same_proposal(propose(),
                                              recorded[static_cast<std::size_t>(trial)].proposed));
        complete(0.5);
    }
    EXPECT_TRUE(proposals_->is_over());
}

TEST_F(TrialProposalsTest, ReplaysOnlyASearchWithEqualSettings) {
    propose();
    complete(0.5);
    const std::string recorded = "search.recorded=" + folder_.path().string();
    const auto check = [&](const std::string& setting, int groups) {
        results::require_replayable(
            config::parse(kSearch, "f.yaml", {"search.history=recorded", recorded, setting}),
            groups);
    };
    const auto refusal = [&](const std::string& setting, int groups) {
        return storage::error_of(ExitCode::usage, [&] { check(setting, groups); });
    };
    EXPECT_NE(refusal("run.seed=3", 2).find("is no result of a search"), std::string::npos);
    storage::write_file_durably(folder_ / "config.yaml", config::to_yaml(context_->config));
    EXPECT_NE(refusal("run.seed=4", 2).find("'seed: 3', but this search has 'seed: 4'"),
              std::string::npos);
    EXPECT_NE(refusal("search.parent=random", 2).find("other settings"), std::string::npos);
    EXPECT_NE(refusal("run.seed=3", 2).find("group 1 of"), std::string::npos);
    add_to_other({});
    EXPECT_NE(refusal("run.seed=3", 1).find("more than the 1 groups"), std::string::npos);
    check("search.trials=9", 2);
}

}  // namespace
}  // namespace hpcai::group
