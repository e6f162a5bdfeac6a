// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/comm/rank_device.hpp>
#include <hpcai/device/cpu_device.hpp>

#include "world.hpp"

namespace hpcai::comm {
namespace {

using mpi_tests::world;

/// Memory of a device.
class DeviceFloats {
public:
    DeviceFloats(device::Device& device, std::size_t count)
        : device_(device), memory_(device.allocate(count * sizeof(float))), count_(count) {}
    std::span<float> values() { return {static_cast<float*>(memory_->data()), count_}; }
    void write(std::span<const float> from) {
        device_.upload(memory_->data(), std::as_bytes(from));
    }
    std::vector<float> read() {
        std::vector<float> values(count_);
        device_.download(std::as_writable_bytes(std::span(values)), memory_->data());
        return values;
    }

private:
    device::Device& device_;
    std::unique_ptr<device::Memory> memory_;
    std::size_t count_;
};

class ReducersOverMpi : public testing::TestWithParam<std::string> {
protected:
    std::unique_ptr<GradientReducer> make(Communicator& group) {
        if (GetParam() == "mpi") return make_mpi_reducer(group);
        AllReduceOptions options;
        options.node_of_rank.resize(static_cast<std::size_t>(group.size()));
        return make_point_to_point_reducer(group, device_.get(), options);
    }
    Communicator& group_ = world().everyone;
    std::unique_ptr<device::Device> device_ = device::make_cpu_device({});
    std::unique_ptr<GradientReducer> reducer_ = make(group_);
};

INSTANTIATE_TEST_SUITE_P(Ways, ReducersOverMpi, testing::Values("mpi", "through_host_memory"),
                         [](const auto& way) { return way.param; });

TEST_P(ReducersOverMpi, OneRankAloneCanBeRecordedAndOthersCannot) {
    EXPECT_EQ(reducer_->size(), group_.size());
    EXPECT_EQ(reducer_->can_be_recorded(), group_.size() == 1);
    const auto self = make_self_communicator();
    const auto alone = make(*self);
    EXPECT_EQ(alone->size(), 1);
    EXPECT_TRUE(alone->can_be_recorded());
    std::vector<float> values{1, 2, 3};
    DeviceFloats memory(*device_, values.size());
    memory.write(values);
    alone->start_all_reduce(memory.values())->wait();
    EXPECT_EQ(memory.read(), values);
}

TEST_P(ReducersOverMpi, AnAllReduceThrowsTheFailureThatAnotherRankAnnounced) {
    if (group_.size() == 1) GTEST_SKIP() << "needs two ranks";
    for (const std::size_t size : {std::size_t{10}, std::size_t{40000}}) {
        const auto group = group_.split(0, group_.rank());
        const auto reducer = make(*group);
        DeviceFloats memory(*device_, size);
        if (group->rank() == 1) {
            group->announce_failure(Error(ExitCode::data, "a photograph is missing"));
            EXPECT_THROW(reducer->start_all_reduce(memory.values()), Error);
        } else {
            try {
                reducer->start_all_reduce(memory.values())->wait();
                ADD_FAILURE() << "the sum came without rank 1";
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), ExitCode::data);
                EXPECT_STREQ(error.what(), "a photograph is missing");
            }
            EXPECT_THROW(reducer->start_all_reduce(memory.values()), Error)
                << "a failed group must stay failed";
        }
        group_.barrier();
    }
}

TEST(RankDevicesOverMpi, EveryRankReceivesThoseOfAll) {
    Communicator& ranks = world().everyone;
    const auto gpu = [](int rank) { return "GPU-" + std::to_string(rank / 2); };
    const auto all = gather_rank_devices(ranks, {"host", gpu(ranks.rank()), ranks.rank() + 7});
    ASSERT_EQ(all.size(), static_cast<std::size_t>(ranks.size()));
    for (int rank = 0; rank < ranks.size(); ++rank) {
        const RankDevice& one = all[static_cast<std::size_t>(rank)];
        EXPECT_EQ(one.host, "host");
        EXPECT_EQ(one.uuid, gpu(rank));
        EXPECT_EQ(one.nccl_version, rank + 7);
    }
}

TEST(CheckForFailure, ThrowsWhatAnotherRankAnnouncedWithoutWaiting) {
    Communicator& everyone = world().everyone;
    if (everyone.size() == 1) GTEST_SKIP() << "needs two ranks";
    const auto group = everyone.split(0, everyone.rank());
    EXPECT_NO_THROW(group->check_for_failure());
    everyone.barrier();
    const Error failure(ExitCode::data, "a photograph is missing");
    if (group->rank() == 1) group->announce_failure(failure);
    everyone.barrier();
    const auto look = [&] {
        for (int times = 0; times < 1000; ++times) {
            group->check_for_failure();
            everyone.check_for_failure();
            std::this_thread::yield();
        }
    };
    EXPECT_THROW(look(), Error);
    EXPECT_NO_THROW(everyone.check_for_failure()) << "announced to the ranks of one group only";
    everyone.barrier();
}

}  // namespace
}  // namespace hpcai::comm
