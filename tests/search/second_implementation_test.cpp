// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/child_process.hpp"
#include "example_search.hpp"

/// Proposals against scripts/verify_result.
namespace hpcai::search {
namespace {

using nlohmann::json;

/// A search by `parent`, and the configuration that describes it.
json case_of(ParentRule parent, const char* name, int lines, bool has_plain = false) {
    Basis basis = example_basis(parent, 7);
    basis.settings.has_plain_deepening = has_plain;
    basis.settings.dimensions = {{"learning_rate", 0.25, 1, true, {}, 0.5},
                                 {"weight_decay", 1e-5, 1e-3, true, {}, 1e-4}};
    json histories = json::array();
    for (const History& history : example_search(basis, 2, lines)) {
        std::string text;
        for (const Trial& trial : history.trials()) {
            text += records::to_json_line(trial.proposed) + "\n";
            if (trial.finished) text += records::to_json_line(*trial.finished) + "\n";
        }
        histories.push_back(text);
    }
    return {{"histories", histories},
            {"config",
             {{"run.seed", "7"},
              {"workload.image_size", "64"},
              {"workload.channels", "3"},
              {"workload.backbone_width", "8"},
              {"workload.classes", "5"},
              {"workload.model", "resnet50"},
              {"training.learning_rate", "0.5"},
              {"training.weight_decay", "0.0001"},
              {"search.root_blocks", "[1, 1, 1, 1]"},
              {"search.rate_factors", "[0.5, 2]"},
              {"search.weight_decays", "[0.00001, 0.001]"},
              {"search.max_flops_factor", "4"},
              {"search.plain_deepening", has_plain ? "true" : "false"},
              {"search.parent", name}}}};
}

TEST(SecondImplementation, ProposesTheSameTrials) {
    const json cases{case_of(ParentRule::evolution, "evolution", 120),
                     case_of(ParentRule::random, "random", 80, true),
                     case_of(ParentRule::bayesian, "bayesian", 40, true)};
    const storage::TemporaryFolder folder;
    std::ofstream(folder / "cases.json") << cases;
    const cli::Outcome outcome = cli::execute_in(
        folder.path(), {"python3", cli::source("tests/search/second_implementation.py"),
                        cli::source("scripts/verify_result"), "cases.json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_EQ(outcome.out, "121 proposals agree\n");
}

}  // namespace
}  // namespace hpcai::search
