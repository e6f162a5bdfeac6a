// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

/// communication.algorithm and communication.precision, from the configuration to the record.
namespace hpcai::end_to_end {
namespace {

using Json = nlohmann::json;

class GradientSums : public testing::Test {
protected:
    void SetUp() override {
        make_pictures(folder_.path());
        write(folder_ / "tiny.yaml", kConfig);
    }

    Json record_of(std::vector<std::string> changes) {
        changes.insert(changes.end(), {"bagging.M=1", "bagging.P_degree=4"});
        const std::string output = fmt::format("result{}", runs_++);
        const Outcome outcome = run_ranks(folder_.path(), 4, changes, output);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
        return json_of(folder_ / (output + "/result.json"));
    }

    storage::TemporaryFolder folder_;
    int runs_ = 0;
};

struct Way {
    std::vector<std::string> changes;
    double bytes_per_gradient;  // sent, including its share of a scale
    double loss_tolerance;      // of the last epoch's mean
};

TEST_F(GradientSums, UseTheConfiguredAlgorithmWithTheBytesOfTheFormula) {
    const Json usual = record_of({});
    const double loss = usual["work"]["groups"][0]["final_training_loss"];
    EXPECT_EQ(usual["communication"]["algorithm"], "all_reduce");
    const std::vector<Way> ways{{{"communication.algorithm=torus_2d"}, 4, 1e-4},
                                {{"communication.algorithm=hierarchical",
                                  "communication.ranks_per_node=2", "communication.precision=fp16"},
                                 2 + 4.0 / 256,
                                 1e-2},
                                {{"communication.precision=int8"}, 1 + 4.0 / 256, 5e-2}};
    for (const Way& way : ways) {
        const Json record = record_of(way.changes);
        const Json sums = record["communication"];
        for (const std::string& change : way.changes) {
            const std::string key = change.substr(14, change.find('=') - 14);
            const std::string value = change.substr(change.find('=') + 1);
            EXPECT_EQ(sums[key], key == "ranks_per_node" ? Json(2) : Json(value));
        }
        const bool is_torus = sums["algorithm"] == "torus_2d";
        EXPECT_EQ(sums["torus_columns"], is_torus ? Json(2) : Json()) << "the nearest to a square";
        const double gradients = sums["gradient_bytes"].get<double>() / sizeof(float);
        const double sent = sums["sent_bytes_per_step"];
        // Four ranks with equal parts; buckets are divided into whole blocks.
        EXPECT_NEAR(sent / (1.5 * way.bytes_per_gradient * gradients), 1, 0.01) << way.changes[0];
        EXPECT_EQ(sums["out_of_node_bytes_per_step"], 0) << "all ranks are on one node";
        EXPECT_NEAR(record["work"]["groups"][0]["final_training_loss"], loss, way.loss_tolerance);
        EXPECT_NE(record["training_digest"], usual["training_digest"]) << "in another order";
        EXPECT_GT(record["work"]["groups"][0]["audit"]["passed"], 0);
    }
}

TEST_F(GradientSums, OfTheMpiLibraryItselfAreRecordedWithoutBytes) {
    const Json usual = record_of({});
    const Json native = record_of({"communication.algorithm=native"});
    EXPECT_EQ(native["communication"]["algorithm"], "native");
    EXPECT_EQ(native["communication"]["backend"], "mpi");
    EXPECT_EQ(native["communication"]["sent_bytes_per_step"], Json());
    EXPECT_EQ(native["communication"]["gradient_bytes"], usual["communication"]["gradient_bytes"]);
    EXPECT_NEAR(native["work"]["groups"][0]["final_training_loss"],
                usual["work"]["groups"][0]["final_training_loss"], 1e-4);
    EXPECT_GT(native["work"]["groups"][0]["audit"]["passed"], 0);
    EXPECT_EQ(cli::run_in(folder_.path(), {"verify", "result1"}).exit_code, 0);
}

TEST_F(GradientSums, OfAGridThatDoesNotFitAreRejectedAtTheStart) {
    const Outcome outcome =
        run_ranks(folder_.path(), 4,
                  {"bagging.M=1", "bagging.P_degree=4", "communication.algorithm=torus_2d",
                   "communication.torus_columns=3"});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.error;
    ASSERT_EQ(messages(outcome).size(), 1U) << outcome.error;
    EXPECT_NE(messages(outcome)[0].find("communication.torus_columns"), std::string::npos);
    EXPECT_FALSE(fs::exists(folder_ / "result"));
}

}  // namespace
}  // namespace hpcai::end_to_end
