// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <hpcai/speed/bench.hpp>
#include <hpcai/speed/roofline.hpp>
#include <hpcai/verification/derive.hpp>

#include "speed/rates.hpp"
#include "storage/temporary_folder.hpp"
#include "support/example_roofline.hpp"

namespace hpcai::speed {
namespace {

TEST(AllReduceFit, FindsTheLatencyAndBandwidthThatMadeTheTimes) {
    std::vector<AllReduceRate> rates;
    for (const double bytes : {4096.0, 65536.0, 1048576.0, 67108864.0}) {
        rates.push_back({"run", 4, bytes, 2e-4 + bytes / 5e8, 0});
    }
    const AllReduceFit line = fit(rates, "mpi");
    EXPECT_NEAR(*line.latency_seconds.value, 2e-4, 1e-10);
    EXPECT_NEAR(*line.bytes_per_second.value, 5e8, 1);
    EXPECT_EQ(line.ranks, 4);
}

TEST(AllReduceFit, ReportsWhyThereIsNone) {
    EXPECT_FALSE(fit({}, "mpi").bytes_per_second.value);
    EXPECT_FALSE(fit({{"run", 2, 4096, 1e-3, 0}}, "mpi").bytes_per_second.value);
    const AllReduceFit falling = fit({{"run", 2, 4096, 1e-3, 0}, {"run", 2, 8192, 1e-4, 0}}, "mpi");
    EXPECT_NE(falling.bytes_per_second.reason.find("do not grow"), std::string::npos);
}

TEST(Ceiling, IsTheFastestMatrixProductOrConvolutionOfTheModel) {
    RooflineRecord record = example_roofline();
    const CeilingRecord ceiling = ceiling_from(record.operations, "fp32");
    EXPECT_EQ(ceiling.gemm_flops.value, 100e9);
    EXPECT_EQ(ceiling.model_convolution_flops.value, 90e9);
    EXPECT_EQ(ceiling.ceiling_flops.value, 100e9);
    EXPECT_EQ(ceiling.ceiling, "gemm 2048, weight_gradient");
    record.operations[3].flops_per_second.value = 110e9;
    EXPECT_EQ(ceiling_from(record.operations, "fp32").ceiling, "layer1.0.conv2, input_gradient");
}

TEST(Ceiling, IsNotOfAConvolutionWhoseKernelMostlyCoversPadding) {
    RooflineRecord record = example_roofline();
    record.operations[3].flops_per_second.value = 110e9;
    const auto convolution_flops = [&](const ops::Operation& operation) {
        record.operations[3].shape = shape_text(operation);
        return *ceiling_from(record.operations, "fp32").model_convolution_flops.value;
    };
    // Padding is a fifth of the taps of 3 x 3 at 6 x 6, and a quarter at 5 x 5.
    EXPECT_EQ(convolution_flops(ops::Convolution{{8, 6, 6, 512}, 512, 3, 1, 1}), 110e9);
    EXPECT_EQ(convolution_flops(ops::Convolution{{8, 5, 9, 512}, 512, 3, 1, 1}), 60e9);
    EXPECT_EQ(convolution_flops(ops::Convolution{{8, 1, 1, 512}, 512, 3, 1, 1}), 60e9);
    EXPECT_EQ(convolution_flops(ops::Convolution{{8, 1, 1, 512}, 512, 1, 1, 0}), 110e9);
    EXPECT_FALSE(is_mostly_padded(shape_text(ops::Linear{{1, 1}, 3})));
}

TEST(Ceiling, OfAnotherPrecisionIsNone) {
    const CeilingRecord ceiling = ceiling_from(example_roofline().operations, "bf16");
    EXPECT_FALSE(ceiling.ceiling_flops.value);
    EXPECT_EQ(ceiling.ceiling_flops.reason, "no ceiling was measured in bf16");
}

TEST(Utilization, IsARanksShareOfTheCeiling) {
    const CeilingRecord ceiling = ceiling_from(example_roofline().operations, "fp32");
    const UtilizationRecord used = verification::utilization_of(ceiling, {160e9, ""}, 4);
    EXPECT_DOUBLE_EQ(*used.flops_per_rank.value, 40e9);
    EXPECT_DOUBLE_EQ(*used.fraction.value, 0.4);
    const UtilizationRecord none =
        verification::utilization_of(ceiling, {std::nullopt, "no group finished"}, 4);
    EXPECT_EQ(none.fraction.reason, "no group finished");
}

TEST(OperationsOfModel, HasEachShapeOnceAndCountsItsNodes) {
    const std::vector<MeasuredOperation> operations =
        operations_of_model(config::Config{}, 2, tensor::DType::f32);
    std::set<std::string> shapes;
    int convolutions = 0, linears = 0;
    for (const MeasuredOperation& one : operations) {
        EXPECT_TRUE(shapes.insert(shape_text(one.operation)).second) << one.name;
        (ops::name_of(one.operation) == "linear" ? linears : convolutions) += one.nodes;
    }
    EXPECT_EQ(convolutions, 53) << "of a ResNet-50";
    EXPECT_EQ(linears, 1);
    const auto first = std::ranges::find(operations, "conv1", &MeasuredOperation::name);
    ASSERT_NE(first, operations.end());
    EXPECT_FALSE(first->needs_input_gradient);
}

TEST(MeasuredRates, AreWorkOverTimeOfEachPass) {
    const auto self = comm::make_self_communicator();
    const auto device = device::make_cpu_device({.threads = 1});
    RateMeter meter(*device, *self, 60);
    const MeasuredOperation one{"small", ops::Convolution{{2, 8, 8, 16}, 32, 3, 1, 1}, true, 1};
    const std::vector<OperationRate> rates = measure_operations(meter, {one}, {}, 0.01);
    ASSERT_EQ(rates.size(), 3U);
    for (const OperationRate& rate : rates) {
        EXPECT_EQ(rate.flops, 2.0 * 9 * 16 * 32 * 2 * 8 * 8) << rate.pass;
        EXPECT_GT(*rate.seconds.value, 0) << rate.pass;
        EXPECT_DOUBLE_EQ(*rate.flops_per_second.value, rate.flops / *rate.seconds.value);
    }
    EXPECT_EQ(rates[0].bytes, 4.0 * (2 * 64 * 16 + 9 * 16 * 32 + 2 * 64 * 32));
}

TEST(MeasuredRates, ReportWhatThereWasNoTimeFor) {
    const auto self = comm::make_self_communicator();
    const auto device = device::make_cpu_device({.threads = 1});
    RateMeter meter(*device, *self, 0);
    const MeasuredOperation one{"small", ops::Convolution{{2, 8, 8, 16}, 32, 3, 1, 1}, true, 1};
    const std::vector<OperationRate> rates = measure_operations(meter, {one}, {}, 1);
    ASSERT_EQ(rates.size(), 1U);
    EXPECT_EQ(rates[0].flops_per_second.reason, "no time was left");
}

TEST(RateMeter, PostponesItsLimitOnlyIfLessTimeIsLeft) {
    const auto self = comm::make_self_communicator();
    const auto device = device::make_cpu_device({.threads = 1});
    RateMeter meter(*device, *self, 0);
    EXPECT_DOUBLE_EQ(meter.ensure_left(1000), 1000);
    EXPECT_FALSE(meter.is_time_over());
    const double limit = meter.limit_seconds();
    EXPECT_GT(meter.ensure_left(1), 1);
    EXPECT_EQ(meter.limit_seconds(), limit);
}

TEST(RateMeter, SharesTheTimeThatIsLeftButNoPostponedTime) {
    const auto self = comm::make_self_communicator();
    const auto device = device::make_cpu_device({.threads = 1});
    RateMeter over(*device, *self, 0);
    over.ensure_left(1000);
    over.share_left(2, [](std::size_t, double) { ADD_FAILURE() << "the time is over"; });
    RateMeter meter(*device, *self, 1000);
    std::vector<double> shares;
    meter.share_left(2, [&](std::size_t index, double seconds) {
        EXPECT_EQ(index, shares.size());
        shares.push_back(seconds);
    });
    ASSERT_EQ(shares.size(), 2U);
    EXPECT_NEAR(shares[0], 500, 100);
    EXPECT_NEAR(shares[1], 1000, 100) << "the first took no time";
}

TEST(Roofline, MeasuresOneRankWithoutMpi) {
    RooflineRequest request;
    request.config.overrides = {"workload.image_size=32", "workload.classes=4",
                                "training.batch_size=1",  "device.threads=1",
                                "device.kind=cpu",        "training.precision=fp32"};
    request.one_precision = true;
    request.seconds = 1;
    RooflineRecord record;
    const ExitCode code = run_roofline(request, [&](const RooflineRecord& one) { record = one; });
    EXPECT_EQ(code, ExitCode::ok);
    EXPECT_TRUE(ceiling_from(record.operations, "fp32").gemm_flops.value);
    EXPECT_GT(record.bandwidths.at(0).bytes_per_second.value.value_or(0), 0);
    EXPECT_NE(record.bandwidths.at(1).bytes_per_second.reason.find("is the host's"),
              std::string::npos);
    EXPECT_TRUE(record.all_reduce.empty());
    ASSERT_EQ(record.calibration.points.size(), 1U);  // the first is measured in any case
    EXPECT_EQ(record.calibration.points.front().samples, 1);
    EXPECT_GT(record.calibration.points.front().step_seconds, 0);
}

/// Returns the numbers of samples that calibrate() measures for 4 samples in `limit_seconds`.
std::vector<int> calibrated_samples(double limit_seconds) {
    config::Config config;
    config.workload.classes = 4;
    config.workload.image_size = 32;
    config.workload.backbone_width = 8;
    config.training.precision = config::Precision::fp32;
    const auto self = comm::make_self_communicator();
    const auto device = device::make_cpu_device({.threads = 1});
    RateMeter meter(*device, *self, limit_seconds);
    const CalibrationRecord record = calibrate(meter, {.config = config, .samples = 4}, 0);
    EXPECT_GT(record.gradient_bytes, 0);
    EXPECT_EQ(record.gradient_bytes % 4, 0);
    EXPECT_EQ(record.reason,
              limit_seconds > 0 ? "" : "no time was left for 2 samples and 4 samples");
    std::vector<int> samples;
    for (const CalibrationPoint& point : record.points) {
        EXPECT_GT(point.step_seconds, 0);
        EXPECT_EQ(point.summed_step_seconds.reason, "there is only one rank");
        samples.push_back(point.samples);
    }
    return samples;
}

TEST(Calibration, MeasuresAQuarterAHalfAndAllOfTheSamplesInTime) {
    constexpr double kHour = 3600;
    EXPECT_EQ(calibrated_samples(kHour), (std::vector{1, 2, 4}));
}

TEST(Calibration, MeasuresAQuarterOfTheSamplesWithoutTime) {
    EXPECT_EQ(calibrated_samples(0), std::vector{1});
}

TEST(BenchSvg, RejectsCeilingsOfAnotherPrecision) {
    BenchReport report;
    report.precision = "bf16";
    report.operations = {{"conv1", "convolution", "forward", 0.01, 0.01, 1e9, 1e6}};
    EXPECT_NE(storage::error_of(ExitCode::data, [&] { bench_svg(report, example_roofline()); })
                  .find("expected rates in bf16"),
              std::string::npos);
    report.precision = "fp32";
    EXPECT_NE(bench_svg(report, example_roofline()).find("conv1 forward: 100 GFLOPS"),
              std::string::npos);
}

}  // namespace
}  // namespace hpcai::speed
