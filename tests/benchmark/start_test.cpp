// SPDX-License-Identifier: Apache-2.0
#include "../../src/benchmark/start.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "storage/temporary_folder.hpp"

namespace hpcai::benchmark {
namespace {

using storage::error_of;
using tensor::DType;

/// A device of which only the precisions are known.
class PaperDevice final : public device::Device {
public:
    explicit PaperDevice(std::vector<DType> dtypes) : dtypes_(std::move(dtypes)) {}

    std::vector<DType> compute_dtypes() const override { return dtypes_; }
    std::string description() const override { return "paper"; }
    int threads() const override { return 1; }
    device::Determinism determinism() const override { return {}; }
    std::unique_ptr<device::Memory> allocate(std::size_t) override { refuse(); }
    void upload(void*, std::span<const std::byte>) override { refuse(); }
    void download(std::span<std::byte>, const void*) override { refuse(); }
    void store_channels_last(void*, const tensor::Shape&, DType, std::span<const float>) override {
        refuse();
    }
    void load_channels_last(std::span<float>, const tensor::Shape&, DType, const void*) override {
        refuse();
    }
    void synchronize() override { refuse(); }
    std::unique_ptr<device::Kernel> build(const ops::Operation&,
                                          const device::KernelOptions&) override {
        refuse();
    }
    void sgd(const device::SgdStep&, std::span<float>, std::span<const float>,
             std::span<float>) override {
        refuse();
    }
    std::uint64_t hash(std::span<const float>) override { refuse(); }

private:
    [[noreturn]] static void refuse() { throw Error(ExitCode::internal, "paper does not compute"); }
    std::vector<DType> dtypes_;
};

TEST(ChoosePrecision, TakesTheFastestOfTheDeviceByItself) {
    using config::Precision;
    EXPECT_EQ(choose_precision(Precision::automatic, PaperDevice({DType::bf16, DType::f32})),
              DType::bf16);
    EXPECT_EQ(choose_precision(Precision::automatic, PaperDevice({DType::f32})), DType::f32);
}

TEST(ChoosePrecision, TakesWhatIsAskedForWhereTheDeviceHasIt) {
    using config::Precision;
    const PaperDevice both({DType::bf16, DType::f32});
    EXPECT_EQ(choose_precision(Precision::fp32, both), DType::f32);
    EXPECT_EQ(choose_precision(Precision::bf16, both), DType::bf16);
}

TEST(ChoosePrecision, RefusesWhatTheDeviceLacksAndNamesWhatThereIs) {
    const std::string message = error_of(ExitCode::usage, [] {
        choose_precision(config::Precision::bf16, PaperDevice({DType::f32}));
    });
    EXPECT_NE(message.find("training.precision"), std::string::npos) << message;
    EXPECT_NE(message.find("'bf16'"), std::string::npos) << message;
    EXPECT_NE(message.find("(fp32)"), std::string::npos) << message;
}

TEST(OpenDevice, HasTheThreadsAskedFor) {
    config::Config config;
    for (const int threads : {1, 2, 3}) {
        config.device.threads = threads;
        EXPECT_EQ(open_device(config, {}, 1)->threads(), threads);
    }
}

TEST(OpenDevice, PromisesTheSameBitsOnlyWhenTheyAreAskedFor) {
    config::Config config;
    EXPECT_FALSE(open_device(config, {}, 1)->determinism().over_threads);
    config.run.deterministic = true;
    EXPECT_TRUE(open_device(config, {}, 1)->determinism().over_threads);
}

TEST(OpenDevice, TakesEveryLayout) {
    using config::ActivationLayout;
    for (const auto layout : {ActivationLayout::automatic, ActivationLayout::blocked,
                              ActivationLayout::channels_last}) {
        config::Config config;
        config.device.threads = 1;
        config.device.layout = layout;
        EXPECT_NE(open_device(config, {}, 1), nullptr);
    }
}

}  // namespace
}  // namespace hpcai::benchmark
