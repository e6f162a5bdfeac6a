// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/data/image_codec.hpp>
#include <hpcai/plan/data_sampler.hpp>

#include "data/staging.hpp"
#include "shared_folder.hpp"

/// Copies that the ranks of a node make jointly.
namespace hpcai::data {
namespace {

namespace fs = std::filesystem;
using mpi_tests::SharedFolder;
using mpi_tests::world;

constexpr std::uint32_t kDuplicatedFiles = 40;

/// Groups of `degree` ranks; `node_of_rank` emulates hosts, each with a separate directory.
class RanksStage : public testing::Test {
protected:
    RanksStage() : everyone_(world().everyone), folder_(everyone_), shared_(folder("shared")) {
        for (std::uint32_t file = 0; file < kDuplicatedFiles; ++file) {
            shared_.add(150'000 + 1000 * file, everyone_.rank() == 0);
        }
        everyone_.barrier();
    }
    ~RanksStage() override { everyone_.barrier(); }

    fs::path folder(const std::string& name) const { return fs::path(folder_.path()) / name; }

    void play(int degree, std::vector<int> node_of_rank, int stages = 1, int parts = 1) {
        const int ranks = everyone_.size();
        controller_ = std::make_unique<plan::ParallelismController>(
            plan::Layout{ranks, ranks / degree, degree, stages, 1, parts}, node_of_rank);
        place_ = controller_->place(everyone_.rank());
        const fs::path local = folder("node" + std::to_string(place_.node));
        fs::create_directories(local);
        config_ = test::staging_config(local);
        config_.bagging.sampler = config::Sampler::poisson;
    }
    test::Staged run() {
        DataDuplicator duplicator(config_, *controller_, everyone_, 2);
        duplicator.add_pictures(Split::training, shared_.request());
        duplicator.run();
        return {duplicator.pictures(Split::training), duplicator.result().record,
                duplicator.result().lock};
    }
    /// Returns the files in the bootstraps of the groups on a node.
    std::set<std::uint32_t> needed_on(int node) const {
        const plan::DataSampler sampler(config_.bagging, config_.run.seed, kDuplicatedFiles);
        std::set<std::uint32_t> needed;
        for (int rank = 0; rank < everyone_.size(); ++rank) {
            const plan::RankPlace& place = controller_->place(rank);
            if (place.node != node) continue;
            const auto counts = sampler.counts(static_cast<std::uint32_t>(place.group));
            for (std::uint32_t file = 0; file < kDuplicatedFiles; ++file) {
                if (counts[file] > 0) needed.insert(file);
            }
        }
        return needed;
    }
    std::int64_t bytes_of(const std::set<std::uint32_t>& files) const {
        return std::accumulate(
            files.begin(), files.end(), std::int64_t{0}, [&](std::int64_t sum, std::uint32_t file) {
                return sum + static_cast<std::int64_t>(shared_.bytes(file).size());
            });
    }
    std::int64_t bytes_on_disk() const {
        std::int64_t bytes = 0;
        for (const std::string& name : tests::files_below(config_.data.staging_directory)) {
            const fs::path path = fs::path(config_.data.staging_directory) / name;
            const bool is_pack = path.filename().string().starts_with("pack-");
            if (is_pack && path.extension().empty()) {
                bytes += static_cast<std::int64_t>(fs::file_size(path));
            }
        }
        return bytes;
    }

    comm::Communicator& everyone_;
    SharedFolder folder_;
    test::SharedFiles shared_;
    std::unique_ptr<plan::ParallelismController> controller_;
    plan::RankPlace place_;
    config::Config config_;
};

TEST_F(RanksStage, CopyNoSampleTwiceWhereGroupsShareAHost) {
    play(1, std::vector<int>(static_cast<std::size_t>(everyone_.size()), 0));
    const std::set<std::uint32_t> needed = needed_on(0);
    const test::Staged staged = run();
    EXPECT_EQ(staged.record.copied_bytes, bytes_of(needed));
    EXPECT_EQ(staged.record.files, static_cast<std::int64_t>(needed.size()));
    EXPECT_EQ(bytes_on_disk(), bytes_of(needed));
    for (std::uint32_t file = 0; file < kDuplicatedFiles; ++file) {
        const auto read = staged.pictures->read(file);
        EXPECT_EQ(read.has_value(), needed.contains(file));
        if (read) {
            EXPECT_EQ(*read, shared_.bytes(file));
        }
    }
}

TEST_F(RanksStage, CopyToEachHostWhatItsGroupsNeed) {
    std::vector<int> nodes;
    for (int rank = 0; rank < everyone_.size(); ++rank) nodes.push_back(rank % 2);
    play(1, nodes);
    const test::Staged staged = run();
    std::int64_t all = 0;
    std::int64_t most = 0;
    for (int node = 0; node < std::min(2, everyone_.size()); ++node) {
        all += bytes_of(needed_on(node));
        most = std::max(most, bytes_of(needed_on(node)));
    }
    EXPECT_EQ(staged.record.copied_bytes, all);
    EXPECT_EQ(staged.record.fullest_node_bytes, most);
    EXPECT_EQ(bytes_on_disk(), bytes_of(needed_on(place_.node)));
    for (const std::uint32_t file : needed_on(place_.node)) {
        EXPECT_EQ(staged.pictures->read(file), shared_.bytes(file));
    }
}

TEST_F(RanksStage, CopyABootstrapToEachHostOfItsGroup) {
    if (everyone_.size() % 2 != 0) return;
    std::vector<int> nodes;
    for (int rank = 0; rank < everyone_.size(); ++rank) nodes.push_back(rank % 2);
    play(everyone_.size(), nodes);
    const std::set<std::uint32_t> needed = needed_on(0);
    const test::Staged staged = run();
    EXPECT_LT(needed.size(), kDuplicatedFiles);
    EXPECT_EQ(needed, needed_on(1));
    EXPECT_EQ(staged.record.copied_bytes, 2 * bytes_of(needed));
    EXPECT_EQ(bytes_on_disk(), bytes_of(needed));
    for (const std::uint32_t file : needed) {
        EXPECT_EQ(staged.pictures->read(file), shared_.bytes(file));
    }
}

TEST_F(RanksStage, CopyABootstrapToTheHostWhoseRanksReadItInAPipeline) {
    if (everyone_.size() % 2 != 0) return;
    std::vector<int> nodes;
    for (int rank = 0; rank < everyone_.size(); ++rank) nodes.push_back(rank % 2);
    play(everyone_.size(), nodes, 2);  // one pipeline stage on each host
    const test::Staged staged = run();
    EXPECT_EQ(staged.record.copied_bytes, bytes_of(needed_on(0)));
    EXPECT_EQ(bytes_on_disk(), place_.node == 0 ? bytes_of(needed_on(0)) : 0);
}

TEST_F(RanksStage, CopyABootstrapToTheHostOfThePartThatReadsIt) {
    if (everyone_.size() % 2 != 0) return;
    std::vector<int> nodes;
    for (int rank = 0; rank < everyone_.size(); ++rank) nodes.push_back(rank % 2);
    play(everyone_.size(), nodes, 1, everyone_.size());
    const test::Staged staged = run();
    EXPECT_EQ(staged.record.copied_bytes, bytes_of(needed_on(0)));
    EXPECT_EQ(bytes_on_disk(), place_.node == 0 ? bytes_of(needed_on(0)) : 0);
}

TEST_F(RanksStage, ReuseTogetherWhatIsThere) {
    play(1, std::vector<int>(static_cast<std::size_t>(everyone_.size()), 0));
    run();
    everyone_.barrier();
    const test::Staged again = run();
    EXPECT_EQ(again.record.copied_bytes, 0);
    EXPECT_EQ(again.record.reused_bytes, bytes_of(needed_on(0)));
}

TEST_F(RanksStage, AllThrowTheErrorOfTheFileThatOneCannotCopy) {
    play(1, std::vector<int>(static_cast<std::size_t>(everyone_.size()), 0));
    config_.bagging.sampler = config::Sampler::none;
    DataDuplicator duplicator(config_, *controller_, everyone_, 2);
    duplicator.add_pictures(Split::training, shared_.request());
    everyone_.barrier();
    if (everyone_.rank() == 0) fs::resize_file(shared_.path(17), 1000);
    everyone_.barrier();
    const auto [code, text] = test::refused([&] { duplicator.run(); });
    EXPECT_EQ(code, ExitCode::data);
    EXPECT_NE(text.find(shared_.path(17).string()), std::string::npos) << text;
    everyone_.barrier();
}

TEST_F(RanksStage, AllThrowTheErrorOfTheHostWithoutSpace) {
    std::vector<int> nodes;
    for (int rank = 0; rank < everyone_.size(); ++rank) nodes.push_back(rank % 2);
    play(1, nodes);
    const int poor = std::min(1, everyone_.size() - 1);
    if (place_.node == poor) config_.data.staging_reserve_mib = 2'000'000'000;
    const auto [code, text] = test::refused([&] { run(); });
    EXPECT_EQ(code, ExitCode::usage);
    EXPECT_NE(text.find("on node " + std::to_string(poor)), std::string::npos) << text;
    EXPECT_EQ(bytes_on_disk(), 0);
    everyone_.barrier();
}

TEST_F(RanksStage, RejectADirectoryThatTwoHostsShare) {
    if (everyone_.size() < 2) return;
    std::vector<int> nodes;
    for (int rank = 0; rank < everyone_.size(); ++rank) nodes.push_back(rank % 2);
    play(1, nodes);
    config_.data.staging_directory = folder("node0").string();
    everyone_.barrier();
    const auto [code, text] = test::refused([&] { run(); });
    EXPECT_EQ(code, ExitCode::usage);
    EXPECT_NE(text.find("by another node if nodes share the directory"), std::string::npos) << text;
}

TEST_F(RanksStage, RemoveTheStageWhenTheLastOfThemLeaves) {
    play(1, std::vector<int>(static_cast<std::size_t>(everyone_.size()), 0));
    config_.data.staging_cleanup = config::StagingCleanup::remove_on_success;
    const test::Staged staged = run();
    const fs::path local = config_.data.staging_directory;
    for (int rank = 0; rank < everyone_.size(); ++rank) {
        everyone_.barrier();
        EXPECT_FALSE(tests::files_below(local).empty()) << rank << " ranks have left";
        everyone_.barrier();
        if (everyone_.rank() == rank) staged.staging_lock->release(true);
    }
    everyone_.barrier();
    EXPECT_TRUE(fs::is_empty(local));
}

TEST_F(RanksStage, StageOfWhatIsEvaluatedTheirOwnShares) {
    if (everyone_.size() % 2 != 0) return;
    std::vector<int> nodes;
    for (int rank = 0; rank < everyone_.size(); ++rank) nodes.push_back(rank % 2);
    play(everyone_.size(), nodes);  // one group over both hosts
    config_.data.staging = config::Staging::all;
    DataDuplicator duplicator(config_, *controller_, everyone_, 2);
    duplicator.add_pictures(Split::validation, shared_.request());
    duplicator.run();
    EXPECT_EQ(duplicator.result().record.files, kDuplicatedFiles);  // each on one host
    const auto pictures = duplicator.pictures(Split::validation);
    const std::uint32_t share = kDuplicatedFiles / static_cast<std::uint32_t>(everyone_.size());
    const auto first = static_cast<std::uint32_t>(place_.group_rank) * share;
    for (std::uint32_t file = first; file < first + share; ++file) {
        EXPECT_EQ(pictures->read(file), shared_.bytes(file));
    }
    everyone_.barrier();
}

}  // namespace
}  // namespace hpcai::data
