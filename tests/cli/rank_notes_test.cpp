// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "child_process.hpp"

namespace hpcai::cli {
namespace {

TEST(Sbatch, NotesThatARequeuedRunIsNotRankable) {
    const auto requeued = [](const std::string& requeues, const std::string& level) {
        return run({"sbatch", "--config", source("configs/mini_image_classification.yaml"), "--set",
                    "data.path=.", "--set", "data.validation_path=.", "--set", "run.level=" + level,
                    "--nodes", "2", "--requeue", requeues})
            .error;
    };
    const std::string note = "\nsbatch: note: after a requeue, the result is not rankable: ";
    EXPECT_NE(requeued("1", "free").find(note), std::string::npos) << requeued("1", "free");
    EXPECT_EQ(requeued("0", "free").find(note), std::string::npos);
    EXPECT_EQ(requeued("1", "custom"), "");
}

}  // namespace
}  // namespace hpcai::cli
