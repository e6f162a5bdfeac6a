// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "training/networks.hpp"
#include "world.hpp"

/// Audits of one model that all ranks of the world train jointly; one rank has wrong values.
namespace hpcai::training {
namespace {

using mpi_tests::world;

constexpr int kAuditedBatch = 16;  // of the model
constexpr std::int64_t kAuditedSteps = 5;

void flip_lowest_bit(float& value) {
    value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 1U);
}

/// The action after `step` on the rank whose memory fails.
using Fault = std::function<void(std::int64_t step, graph::ParameterStore& store)>;

struct Audited {
    std::optional<Divergence> divergence;
    std::int64_t steps = 0;
    std::int64_t passed = 0;
};

/// Trains with an audit every `audit_steps` steps; `fault` runs on `victim`.
Audited train(int audit_steps, int victim, const Fault& fault,
              config::Optimizer optimizer = config::Optimizer::sgd) {
    const auto group = world().everyone.split(0, world().everyone.rank());
    config::Config config = small_config(kAuditedBatch, 1);
    config.run.audit_steps = audit_steps;
    config.training.optimizer = optimizer;
    const std::int64_t rows = kAuditedBatch / group->size();
    SmallModel model(config, kAuditedSteps, *group, small_graph(rows));
    ToySource source(rows, kAuditedSteps);
    source.set_place(group->rank() * rows, kAuditedBatch);
    Audited result;
    try {
        model.trainer->train_epoch(0, source, [&](const StepReport& report) {
            ++result.steps;
            if (group->rank() == victim) fault(report.step, model.store);
        });
        model.trainer->average_statistics();
        if (group->rank() == victim) fault(kAuditedSteps + 1, model.store);
        model.trainer->audit_final_state();
    } catch (const ReplicaDivergence& error) {
        result.divergence = error.divergence();
    }
    result.passed = model.trainer->audit().passed();
    world().everyone.barrier();  // no rank waits elsewhere
    return result;
}

/// Returns `victim` if a majority can identify it, else all ranks.
std::vector<int> named(int victim) {
    std::vector<int> ranks{victim};
    if (world().everyone.size() == 2) ranks = {0, 1};
    return ranks;
}

class ReplicaAuditOverMpi : public testing::Test {
protected:
    void SetUp() override {
        if (world().everyone.size() == 1) GTEST_SKIP() << "one rank has nothing to compare";
    }

    void expect_divergence(const Audited& audited, int victim, std::int64_t step,
                           const std::vector<std::string>& parts) {
        ASSERT_TRUE(audited.divergence.has_value());
        EXPECT_EQ(audited.divergence->group_ranks, named(victim));
        EXPECT_EQ(audited.divergence->parts, parts);
        EXPECT_EQ(audited.divergence->step, step);
        EXPECT_EQ(audited.divergence->ranks, world().everyone.size());
    }
};

TEST_F(ReplicaAuditOverMpi, PassesWhereEveryReplicaIsTheSame) {
    const auto nothing = [](std::int64_t, graph::ParameterStore&) {};
    EXPECT_EQ(train(1, 0, nothing).passed, kAuditedSteps + 1);
    EXPECT_EQ(train(2, 0, nothing).passed, 3) << "after steps 2 and 4, and at the end";
    EXPECT_EQ(train(0, 0, nothing).passed, 1);
    EXPECT_FALSE(train(1, 0, nothing).divergence.has_value());
}

TEST_F(ReplicaAuditOverMpi, IsMadeBeforeACheckpointWhetherItIsDueOrNot) {
    const auto group = world().everyone.split(0, world().everyone.rank());
    config::Config config = small_config(kAuditedBatch, 1);
    config.run.audit_steps = 0;
    const std::int64_t rows = kAuditedBatch / group->size();
    SmallModel model(config, kAuditedSteps, *group, small_graph(rows));
    ToySource source(rows, kAuditedSteps);
    source.set_place(group->rank() * rows, kAuditedBatch);
    model.trainer->train_epoch(0, source, [](const StepReport&) {});
    model.trainer->check_state();
    EXPECT_EQ(model.trainer->audit().passed(), 1);
    if (group->rank() == 0) flip_lowest_bit(model.store.parameters()[17]);
    EXPECT_THROW(model.trainer->check_state(), ReplicaDivergence);
    world().everyone.barrier();  // no rank waits elsewhere
}

TEST_F(ReplicaAuditOverMpi, NamesTheRankOfASingleWrongBitAfterTheSameStepOnAllRanks) {
    for (int victim = 0; victim < world().everyone.size(); ++victim) {
        const Audited of_parameter = train(1, victim, [](std::int64_t step, auto& store) {
            if (step == 3) flip_lowest_bit(store.parameters()[17]);
        });
        expect_divergence(of_parameter, victim, 3, {"parameters"});
        EXPECT_EQ(of_parameter.steps, 3);
        EXPECT_EQ(of_parameter.passed, 2);
        const Audited of_momentum = train(1, victim, [](std::int64_t step, auto& store) {
            if (step == 2) flip_lowest_bit(store.state(0).back());
        });
        expect_divergence(of_momentum, victim, 2, {"optimizer state"});
        EXPECT_EQ(of_momentum.passed, 1);
    }
}

TEST_F(ReplicaAuditOverMpi, ComparesEverythingThatTheOptimizerKeeps) {
    const int victim = world().everyone.size() - 1;
    for (const int state : {0, 1}) {
        const auto fault = [state](std::int64_t step, graph::ParameterStore& store) {
            if (step == 2) flip_lowest_bit(store.state(state).back());
        };
        expect_divergence(train(1, victim, fault, config::Optimizer::adam), victim, 2,
                          {"optimizer state"});
    }
}

TEST_F(ReplicaAuditOverMpi, FindsAtTheNextAuditWhatHappenedSinceTheLast) {
    const int victim = world().everyone.size() - 1;
    const Audited audited = train(4, victim, [](std::int64_t step, auto& store) {
        if (step == 2) store.state(0)[3] += 0.5F;  // changes the parameter at the next step
    });
    expect_divergence(audited, victim, 4, {"parameters", "optimizer state"});
    EXPECT_EQ(audited.steps, 4);
}

TEST_F(ReplicaAuditOverMpi, NamesTheRankWhoseWrongBitMadeTheGradientsOfAllInfinite) {
    for (int victim = 0; victim < world().everyone.size(); ++victim) {
        const Audited audited = train(0, victim, [](std::int64_t step, auto& store) {
            if (step == 2) store.parameters()[0] = std::numeric_limits<float>::infinity();
        });
        expect_divergence(audited, victim, 2, {"parameters"});
        EXPECT_EQ(audited.steps, 2);
    }
}

TEST_F(ReplicaAuditOverMpi, NamesTheRankThatAloneEndsAnEpochWithAnInfiniteParameter) {
    const int victim = world().everyone.size() - 1;
    const Audited audited = train(0, victim, [](std::int64_t step, auto& store) {
        if (step == kAuditedSteps) store.parameters()[0] = std::numeric_limits<float>::infinity();
    });
    expect_divergence(audited, victim, kAuditedSteps, {"parameters"});
}

TEST_F(ReplicaAuditOverMpi, ComparesTheStatisticsOnlyOnceTheyAreAveraged) {
    const int victim = world().everyone.size() - 1;
    const Audited audited = train(1, victim, [](std::int64_t step, auto& store) {
        if (step == kAuditedSteps + 1) flip_lowest_bit(store.statistics()[5]);
    });
    expect_divergence(audited, victim, kAuditedSteps, {"statistics"});
    EXPECT_EQ(audited.passed, kAuditedSteps)
        << "ranks gather different statistics while they train";
}

}  // namespace
}  // namespace hpcai::training
