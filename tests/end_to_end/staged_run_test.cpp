// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <unistd.h>

#include <hpcai/data/sample_index.hpp>
#include <hpcai/plan/data_sampler.hpp>

#include "launch.hpp"

/// data.staging: the run is the same with data from the node's local disk.
namespace hpcai::end_to_end {
namespace {

using Json = nlohmann::json;

class StagedRun : public testing::Test {
protected:
    void SetUp() override {
        make_pictures(folder_.path());
        write(folder_ / "tiny.yaml", kConfig);
        fs::create_directories(folder_ / "local");
    }

    std::vector<std::string> changes(std::vector<std::string> more = {}) const {
        more.insert(more.end(), {"bagging.sampler=poisson", "run.deterministic=true",
                                 "data.staging_directory=local", "data.staging_reserve_mib=0"});
        return more;
    }
    Json record_of(const std::vector<std::string>& more, const std::string& output) const {
        const Outcome outcome = run_ranks(folder_.path(), 2, changes(more), output);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
        return json_of(folder_ / (output + "/result.json"));
    }
    /// Returns the bytes of the images that both models together draw.
    std::int64_t drawn_bytes() const {
        const data::SampleIndex index = data::scan_image_folder(folder_ / "set/train");
        config::BaggingConfig bagging;
        bagging.sampler = config::Sampler::poisson;
        const plan::DataSampler sampler(bagging, 3,
                                        static_cast<std::uint32_t>(index.samples.size()));
        const auto first = sampler.counts(0);
        const auto second = sampler.counts(1);
        std::int64_t bytes = 0;
        for (std::size_t sample = 0; sample < index.samples.size(); ++sample) {
            if (first[sample] + second[sample] == 0) continue;
            bytes += static_cast<std::int64_t>(fs::file_size(index.path_of(sample)));
        }
        return bytes;
    }
    bool half_written(const std::string& name) const {
        const auto entries = fs::recursive_directory_iterator(folder_ / "local");
        return std::any_of(begin(entries), end(entries), [&](const fs::directory_entry& entry) {
            const std::string found = entry.path().filename();
            return found.starts_with("." + name + ".") && found.ends_with(".tmp");
        });
    }
    /// Runs under a shell that executes `prepares` first; the exit code is mpirun's.
    Outcome run_after(const std::string& prepares, const std::string& output) const {
        std::string command =
            prepares + " \"$0\" --bind-to none -np 2 \"$1\" run --config tiny.yaml --output " +
            output;
        for (const std::string& change : changes({"data.staging=training"})) {
            command += " --set " + change;
        }
        return cli::execute_in(folder_.path(),
                               {"bash", "-c", command, cli::environment("HPCAI500_MPIRUN"),
                                cli::environment("HPCAI500_BINARY")});
    }

    storage::TemporaryFolder folder_;
};

TEST_F(StagedRun, HasTheDigestsOfOneThatReadsTheSource) {
    const Json unstaged = record_of({}, "unstaged");
    const Json staged = record_of({"data.staging=training"}, "staged");
    EXPECT_EQ(staged["training_digest"], unstaged["training_digest"]);
    EXPECT_EQ(text_of(folder_ / "staged/groups/1/predictions.npy"),
              text_of(folder_ / "unstaged/groups/1/predictions.npy"));
    EXPECT_EQ(staged["staging"]["copied_bytes"], drawn_bytes());  // once, for both groups
    EXPECT_EQ(staged["staging"]["scope"], "training");
    EXPECT_GT(staged["time"]["staging_seconds"], 0);
    EXPECT_EQ(unstaged["staging"]["scope"], "none");
    EXPECT_TRUE(unstaged["time"]["staging_seconds"].is_null());

    const Json again =
        record_of({"data.staging=training", "data.staging_cleanup=remove_on_success"}, "again");
    EXPECT_EQ(again["staging"]["copied_bytes"], 0);
    EXPECT_EQ(again["staging"]["reused_bytes"], drawn_bytes());
    EXPECT_EQ(again["training_digest"], unstaged["training_digest"]);
    EXPECT_TRUE(fs::is_empty(folder_ / "local"));

    const Json all = record_of({"data.staging=all", "data.staging_cleanup=remove"}, "all");
    EXPECT_EQ(all["training_digest"], unstaged["training_digest"]);
    EXPECT_EQ(all["quality"], unstaged["quality"]);
    EXPECT_GT(all["staging"]["copied_bytes"], drawn_bytes());
    EXPECT_TRUE(fs::is_empty(folder_ / "local"));
}

/// The bits of a run do not depend on whether its folders are packed, nor on the staging of shards.
TEST_F(StagedRun, OfPackedFoldersIsTheRunOfTheFolders) {
    const std::vector<std::string> packed{"data.path=packed/train",
                                          "data.validation_path=packed/val", "bagging.M=1",
                                          "bagging.P_degree=2"};
    for (const std::string split : {"train", "val"}) {
        const Outcome pack = cli::run_in(
            folder_.path(), {"data", "pack", "set/" + split, "--output", "packed/" + split});
        ASSERT_EQ(pack.exit_code, 0) << pack.error;
    }
    const Json of_folders = record_of({"bagging.M=1", "bagging.P_degree=2"}, "folders");
    std::vector<std::string> staged = packed;
    staged.push_back("data.staging=all");
    for (const auto& [changes, output] :
         {std::pair(packed, "shards"), std::pair(staged, "staged")}) {
        const Json of_shards = record_of(changes, output);
        EXPECT_EQ(of_shards["training_digest"], of_folders["training_digest"]);
        EXPECT_EQ(of_shards["quality"], of_folders["quality"]);
        EXPECT_EQ(of_shards["workload"]["samples_sha256"],
                  of_folders["workload"]["samples_sha256"]);
        EXPECT_EQ(text_of(folder_ / output / "groups/0/predictions.npy"),
                  text_of(folder_ / "folders/groups/0/predictions.npy"));
    }
}

TEST_F(StagedRun, ContinuesWhereAKilledOneStopped) {
    // The calls are before the staging folder has its marker, and within the only pack.
    for (const std::string call : {"4", "20"}) {
        const Outcome killed =
            run_after("LD_PRELOAD=" + cli::environment("HPCAI500_FAILING_DISK") +
                          " HPCAI500_DISK_FOLDER=hpcai500-stage- HPCAI500_DISK_FAULT=kill "
                          "HPCAI500_DISK_CALL=" +
                          call + " exec",
                      "killed");
        EXPECT_NE(killed.exit_code, 0);
        EXPECT_FALSE(fs::exists(folder_ / "killed"));
        EXPECT_EQ(half_written("stage.json"), call == "4");
        EXPECT_EQ(half_written("pack-000000"), call == "20");
    }
    const Json unstaged = record_of({}, "unstaged");
    const Json staged = record_of({"data.staging=training"}, "staged");
    EXPECT_EQ(staged["training_digest"], unstaged["training_digest"]);
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "local")) {
        EXPECT_FALSE(entry.path().extension() == ".tmp") << entry.path();
    }
}

TEST_F(StagedRun, IsRejectedForItsResultDirectoryBeforeItCopies) {
    fs::create_directories(folder_ / "taken/by");
    const Outcome outcome = run_after("exec", "taken");
    EXPECT_EQ(outcome.exit_code, 2) << outcome.error;
    EXPECT_NE(outcome.error.find("output directory taken"), std::string::npos) << outcome.error;
    EXPECT_TRUE(fs::is_empty(folder_ / "local"));
}

TEST_F(StagedRun, IsRejectedWhereTheDiskIsTooSmall) {
    const std::string mount = "mount -t tmpfs -o size=16k none local";
    if (cli::execute_in(folder_.path(), {"unshare", "-m", "bash", "-c", mount}).exit_code != 0) {
        GTEST_SKIP() << "no right to mount a small disk";
    }
    const Outcome outcome =
        run_after("unshare -m bash -c '" + mount + " && exec \"$@\"' _ ", "full");
    EXPECT_EQ(outcome.exit_code, 2) << outcome.error;
    const std::vector<std::string> said = messages(outcome);
    ASSERT_EQ(said.size(), 1U) << outcome.error;
    EXPECT_NE(said[0].find("data.staging_directory: 'local' on node 0 has "), std::string::npos)
        << said[0];
    EXPECT_FALSE(fs::exists(folder_ / "full"));
}

TEST_F(StagedRun, EndsWithAClearMessageWhenTheDiskGetsFull) {
    // Enough bytes, but one inode too few: root, folder, its marker, two files of ranks, two
    // folders.
    const std::string mount = "mount -t tmpfs -o size=16m,nr_inodes=7 none local";
    if (cli::execute_in(folder_.path(), {"unshare", "-m", "bash", "-c", mount}).exit_code != 0) {
        GTEST_SKIP() << "no right to mount a small disk";
    }
    const Outcome outcome =
        run_after("unshare -m bash -c '" + mount + " && exec \"$@\"' _ ", "full");
    EXPECT_EQ(outcome.exit_code, 2) << outcome.error;
    const std::vector<std::string> said = messages(outcome);
    ASSERT_EQ(said.size(), 1U) << outcome.error;
    EXPECT_NE(said[0].find("No space left on device"), std::string::npos) << said[0];
    EXPECT_NE(said[0].find("local/hpcai500-stage-"), std::string::npos) << said[0];
}

}  // namespace
}  // namespace hpcai::end_to_end
