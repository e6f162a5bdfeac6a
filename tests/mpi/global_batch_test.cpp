// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/data/generate.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/plan/data_sampler.hpp>

#include "shared_folder.hpp"

/// The batches of a model that ranks make jointly from JPEG files that rank 0 has listed.
namespace hpcai::data {
namespace {

using mpi_tests::SharedFolder;
using mpi_tests::world;

constexpr int kSize = 24;   // pixels a side
constexpr int kBatch = 12;  // of the model: legal for 1, 2, 3 and 4 ranks
constexpr int kEpochs = 2;

template <typename T>
std::vector<T> gathered(comm::Communicator& group, std::span<const T> mine) {
    std::vector<T> all(mine.size() * static_cast<std::size_t>(group.size()));
    group.all_gather(std::as_bytes(mine), std::as_writable_bytes(std::span(all)));
    return all;
}

TrainingSource source_for(const SampleSets& sets, int rank, int degree) {
    SourceSettings settings;
    settings.batch_size = kBatch;
    settings.share = rank;
    settings.shares = degree;
    settings.decode_threads = 1 + rank % 3;
    settings.prefetch_batches = 1 + rank;
    return {sets.training, settings, 7, 1};
}

TEST(GlobalBatches, OfAllRanksTogetherAreTheBatchesOfOneRank) {
    comm::Communicator& everyone = world().everyone;
    const SharedFolder folder(everyone);
    config::Config config;
    config.workload.classes = 3;
    config.workload.image_size = kSize;
    config.data.kind = config::DataKind::image_folder;
    config.data.path = folder.path() + "/set/train";
    config.data.validation_path = folder.path() + "/set/val";
    if (everyone.rank() == 0) {
        generate_photographs({.directory = folder.path() + "/set",
                              .classes = 3,
                              .training_per_class = 17,
                              .validation_per_class = 2,
                              .size = 40},
                             1);
    }
    everyone.barrier();
    const SampleSets sets = make_sample_sets(config, everyone);
    config.bagging.sampler = config::Sampler::bootstrap;
    const plan::DataSampler sampler(config.bagging, 7,
                                    static_cast<std::uint32_t>(sets.training->samples()));
    for (int degree = 1; degree <= everyone.size(); ++degree) {
        const auto group = everyone.split(everyone.rank() / degree, everyone.rank());
        TrainingSource whole = source_for(sets, 0, 1);
        TrainingSource share = source_for(sets, group->rank(), group->size());
        for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
            whole.begin_epoch(epoch, sampler.epoch_order(1, epoch));
            share.begin_epoch(epoch, sampler.epoch_order(1, epoch));
            ASSERT_EQ(share.batches(), 51 / kBatch);
            for (std::int64_t step = 0; step < share.batches(); ++step) {
                const Batch& want = whole.next();
                const Batch& mine = share.next();
                const auto pixels = gathered(*group, mine.images.as<const std::uint8_t>());
                const auto labels = gathered(*group, mine.labels.as<const std::int32_t>());
                EXPECT_TRUE(std::ranges::equal(pixels, want.images.as<std::uint8_t>()))
                    << "step " << step << " of " << group->size() << " ranks";
                EXPECT_TRUE(std::ranges::equal(labels, want.labels.as<std::int32_t>()));
            }
        }
    }
}

}  // namespace
}  // namespace hpcai::data
