// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/reference/load_values.hpp>
#include <hpcai/speed/validate.hpp>

#include "faulty_kernel.hpp"
#include "speed/operation_check.hpp"
#include "support/recording_device.hpp"

namespace hpcai::speed {
namespace {

/// A kernel without results.
class IdleKernel final : public device::Kernel {
public:
    device::KernelMemory memory() const override { return {}; }
    ops::BackwardReads backward_reads() const override { return {.output_gradients = 1}; }
    std::vector<ops::Pass> passes() const override { return {ops::Pass::forward}; }
    void bind(const KernelTensors&) override {}
    void run(ops::Pass) override {}
};

/// The CPU engine with a fault in its kernels. The kernel of a DualNorm, which the engine does not
/// support, is idle.
class FaultyDevice final : public device::RecordingDevice {
public:
    explicit FaultyDevice(Fault fault, bool is_repeatable = false)
        : RecordingDevice(false), fault_(std::move(fault)), is_repeatable_(is_repeatable) {}
    using RecordingDevice::build;
    device::Determinism determinism() const override { return {.is_repeatable = is_repeatable_}; }
    device::KernelPtr build(const ops::Operation& operation,
                            const device::KernelOptions& options) override {
        if (std::holds_alternative<ops::DualNorm>(operation)) {
            return std::make_unique<FaultyKernel>(std::make_unique<IdleKernel>(), fault_);
        }
        ops::Operation supported = operation;  // the fault adds the sums
        if (auto* op = std::get_if<ops::Convolution>(&supported)) op->sums = false;
        return std::make_unique<FaultyKernel>(RecordingDevice::build(supported, options), fault_);
    }

private:
    Fault fault_;
    bool is_repeatable_;
};

DistinctOperation convolution() {
    const ops::Convolution op{
        .input = {2, 7, 9, 3}, .filters = 5, .kernel = 3, .stride = 2, .padding = 1};
    return {"odd", "conv1", 1, op, {{5, 3, 3, 3}}};
}

DistinctOperation norm() {
    return {"odd", "bn1", 1, ops::BatchNorm{.input = {3, 5, 7, 6}, .relu = true}, {{6}, {6}}};
}

OperationCheck check_with(const Fault& fault, const DistinctOperation& distinct) {
    FaultyDevice device(fault);
    return check_operation(distinct, device, {}, 1);
}

/// Returns the tensors that fail, each with its pass.
std::map<std::string, TensorCheck> failures(const OperationCheck& check) {
    std::map<std::string, TensorCheck> failed;
    for (const PassCheck& pass : check.passes) {
        for (const TensorCheck& tensor : pass.tensors) {
            if (!tensor.passed) failed[pass.pass + ": " + tensor.tensor] = tensor;
        }
    }
    return failed;
}

using Place = std::vector<std::int64_t>;

std::vector<device::Precision> cpu_precisions() {
    const auto device = device::make_cpu_device({});
    std::vector<device::Precision> all;
    for (const tensor::DType compute : device->compute_dtypes()) all.push_back({compute});
    if (device->has_int8()) all.push_back({.int8 = true});
    return all;
}

TEST(OperationCheck, PassesInEveryPrecisionOfTheCpu) {
    const tensor::Shape image{2, 7, 5, 32};
    const std::vector<DistinctOperation> all{
        convolution(),
        norm(),
        {"int8", "conv", 1, ops::Convolution{.input = image, .filters = 48}, {{48, 1, 1, 32}}},
        {"first", "conv", 1, ops::Convolution{.input = image, .filters = 2}, {{2, 1, 1, 32}}, true},
        {"", "add", 1, ops::BatchNorm{.input = image, .add = true, .relu = true}, {{32}, {32}}},
        {"", "frozen", 1, ops::BatchNorm{.input = image, .frozen = true}, {{32}, {32}}},
        {"", "group", 1, ops::GroupNorm{.input = image, .groups = 4, .relu = true}, {{32}, {32}}},
        {"", "bias", 1, ops::Bias{image, true}, {{32}}},
        {"", "up", 1, ops::UpsampleAdd{image, {2, 3, 2, 32}}, {}},
        {"", "relu", 1, ops::Relu{image}, {}},
        {"", "add", 1, ops::Add{image}, {}},
        {"", "pool", 1, ops::MaxPool{image, 3, 2, 1}, {}},
        {"", "average", 1, ops::GlobalAveragePool{image}, {}},
        {"", "fc", 1, ops::Linear{{6, 33}, 21}, {{21, 33}, {21}}},
        {"", "loss", 1, ops::SoftmaxCrossEntropy{{6, 11}, 0.1}, {}},
        {"", "cells", 1, ops::CellCrossEntropy{{2, 4, 6, 3}, {2, 6, 5}, 8, 0.25}, {}},
        {"", "pixels", 1, ops::InputNormalize{{2, 3, 5, 3}, {.5, .4, .3}, {.2, .3, .4}}, {}, true}};
    const auto device = device::make_cpu_device({});
    for (const device::Precision& precision : cpu_precisions()) {
        for (const DistinctOperation& distinct : all) {
            const OperationCheck check = check_operation(distinct, *device, precision, 6);
            EXPECT_TRUE(check.passed) << name_of(precision) << " " << check.operation;
            EXPECT_TRUE(check.bits_are_equal) << name_of(precision) << " " << check.operation;
            EXPECT_LT(check.gradient_error, 1e-7) << check.operation;
            EXPECT_TRUE(check.passes.front().low_seconds.value.has_value());
            for (const auto& [tensor, failed] : failures(check)) ADD_FAILURE() << tensor;
        }
    }
}

TEST(OperationCheck, NamesTheLastRowThatAForwardPassForgets) {
    const OperationCheck check = check_with(
        [](const KernelTensors& tensors, ops::Pass pass) {
            if (pass != ops::Pass::forward) return;
            float* const y = static_cast<float*>(tensors.output);  // (2, 4, 5, 5)
            std::fill(y + 175, y + 200, std::numeric_limits<float>::quiet_NaN());
        },
        convolution());
    const auto failed = failures(check);
    ASSERT_EQ(failed.size(), 1U);
    const TensorCheck& output = failed.at("forward: output");
    EXPECT_EQ(output.shape, Place({2, 4, 5, 5}));
    EXPECT_EQ(output.place, Place({1, 3, 0, 0}));
    EXPECT_FALSE(output.largest_error.value);
    EXPECT_EQ(output.severity(), HUGE_VAL);
}

TEST(OperationCheck, NamesTheElementOfAGradientThatIsSlightlyWrong) {
    const OperationCheck filters = check_with(
        [](const KernelTensors& tensors, ops::Pass pass) {
            if (pass == ops::Pass::weight_gradient) tensors.parameter_gradients[0][134] += 1e-3f;
        },
        convolution());
    EXPECT_FALSE(filters.passed);
    ASSERT_EQ(failures(filters).size(), 1U);
    EXPECT_EQ(failures(filters).at("weight_gradient: parameter_gradient 0").place,
              Place({4, 2, 2, 2}));
}

TEST(OperationCheck, NamesTheLastRowOfAnOddSizeInAnInputGradient) {
    const OperationCheck check = check_with(
        [](const KernelTensors& tensors, ops::Pass pass) {
            if (pass != ops::Pass::input_gradient) return;
            float* const dx = static_cast<float*>(tensors.input_gradients[0]);  // (3, 5, 7, 6)
            for (int i = 3 * 5 * 7 * 6 - 7 * 6; i < 3 * 5 * 7 * 6; ++i) dx[i] *= 1.001f;
        },
        norm());
    ASSERT_EQ(failures(check).size(), 1U);
    const Place place = failures(check).at("input_gradient: input_gradient 0").place;
    EXPECT_EQ(Place(place.begin(), place.begin() + 2), Place({2, 4}));
}

TEST(OperationCheck, NamesTheParameterWhoseGradientIsWrong) {
    const OperationCheck check = check_with(
        [](const KernelTensors& tensors, ops::Pass pass) {
            if (pass == ops::Pass::input_gradient) tensors.parameter_gradients[1][5] *= 1.0001f;
            if (pass == ops::Pass::forward) tensors.running_variance[2] *= 1.0001f;
        },
        norm());
    const auto failed = failures(check);
    ASSERT_EQ(failed.size(), 2U);
    EXPECT_EQ(failed.at("input_gradient: parameter_gradient 1").place, Place({5}));
    EXPECT_EQ(failed.at("forward: running_variance").place, Place({2}));
}

TEST(OperationCheck, ComparesSumsOfChannelsApartFromSumsOfSquares) {
    if (std::ranges::count(device::make_cpu_device({})->compute_dtypes(), tensor::DType::bf16) == 0)
        GTEST_SKIP() << "this processor does not compute in bf16";
    DistinctOperation distinct = convolution();
    auto& op = std::get<ops::Convolution>(distinct.operation);
    op.input = {2, 112, 112, 3};
    op.sums = true;
    const auto check_sums = [&](float factor, float factor_of_squares) {
        const std::int64_t numbers = output_shape(op).elements();
        FaultyDevice device([&](const KernelTensors& tensors, ops::Pass pass) {
            if (pass != ops::Pass::forward) return;
            std::vector<double> sums(10);
            auto* const begin = static_cast<std::byte*>(tensors.output);
            const std::span<const std::byte> y(begin, static_cast<std::size_t>(2 * numbers));
            for (std::size_t i = 0; i < y.size() / 2; ++i) {
                const double value = device::stored_number(y, tensor::DType::bf16, i);
                sums[i % 5] += factor * value;
                sums[5 + i % 5] += factor_of_squares * value * value;
            }
            std::ranges::copy(sums,
                              reinterpret_cast<float*>(begin + device::sums_offset(y.size())));
        });
        return failures(check_operation(distinct, device, {tensor::DType::bf16}, 1));
    };
    EXPECT_TRUE(check_sums(1, 1).empty());
    EXPECT_TRUE(check_sums(0, 1).contains("forward: channel_sums"));
    EXPECT_TRUE(check_sums(1, 0.98f).contains("forward: channel_squares"));
}

TEST(OperationCheck, AllowsTheErrorOfASumOnlyToSums) {
    const tensor::Shape image{2, 112, 112, 2};  // the error of sums over a channel may be 9e-6
    const auto failed_with = [&](const DistinctOperation& distinct) {
        return failures(check_with(
            [&](const KernelTensors& tensors, ops::Pass pass) {
                if (pass == ops::Pass::input_gradient)
                    for (float* const gradient : tensors.parameter_gradients)
                        *gradient *= 1.000003f;
                if (pass != ops::Pass::forward) return;
                float* const y = static_cast<float*>(tensors.output);
                for (std::int64_t i = 0; i < image.elements(); ++i) y[i] *= 1.000005f;
            },
            distinct));
    };
    for (const DistinctOperation& distinct :
         {DistinctOperation{"", "relu", 1, ops::Relu{image}, {}},
          DistinctOperation{"", "bn", 1, ops::BatchNorm{.input = image}, {{2}, {2}}}}) {
        const auto failed = failed_with(distinct);
        EXPECT_EQ(failed.size(), 1U) << distinct.node;
        EXPECT_TRUE(failed.contains("forward: output")) << distinct.node;
    }
}

TEST(OperationCheck, ComparesTheStatisticsOfBothNormsOfADualNorm) {
    const ops::BatchNorm inner{.input = {3, 5, 7, 6}, .momentum = 0};  // the statistics stay
    ops::BatchNorm outer = inner;
    outer.add = outer.relu = true;
    const DistinctOperation distinct{"", "", 1, ops::DualNorm{outer, inner}, {{6}, {6}, {6}, {6}}};
    const auto check_where = [&](const Fault& change) {
        return failures(check_with(change, distinct));
    };
    const auto idle = check_where([](const KernelTensors&, ops::Pass) {});
    EXPECT_FALSE(idle.contains("forward: inner_running_mean"));
    EXPECT_FALSE(idle.contains("forward: inner_running_variance"));
    const auto failed = check_where([](const KernelTensors& tensors, ops::Pass) {
        tensors.inner_running_mean[4] += 1;
        tensors.inner_running_variance[5] += 1;
    });
    EXPECT_EQ(failed.at("forward: inner_running_mean").place, Place({4}));
    EXPECT_EQ(failed.at("forward: inner_running_variance").place, Place({5}));
    int runs = 0;
    const auto check = check_with(
        [&](const KernelTensors& tensors, ops::Pass) {
            if (++runs == 3) tensors.inner_running_mean[0] += 1;
        },
        distinct);
    EXPECT_FALSE(check.bits_are_equal);  // of run 3 only, as each run resets the statistics
    EXPECT_NEAR(failures(check).at("forward: inner_running_mean").largest_error.value.value_or(0),
                failed.at("forward: inner_running_mean").largest_error.value.value_or(1), 1e-6);
}

TEST(OperationCheck, FindsWritesPastTheEndOfATensor) {
    const OperationCheck check =
        check_with([](const KernelTensors& tensors,
                      ops::Pass) { static_cast<float*>(tensors.output)[200] = 0; },
                   convolution());
    EXPECT_TRUE(check.writes_past_end);
    EXPECT_FALSE(check.passed);
    EXPECT_TRUE(failures(check).empty());
}

/// Returns a fault that changes an output of the seventh forward pass by a factor or, if that is 1,
/// by its last bit.
Fault fault_of_run_7(float factor, int& runs) {
    return [factor, &runs](const KernelTensors& tensors, ops::Pass pass) {
        if (pass != ops::Pass::forward || ++runs != 7) return;
        float* const y = static_cast<float*>(tensors.output);
        y[3] = factor == 1 ? std::nextafter(y[3], HUGE_VALF) : y[3] * factor;
    };
}

TEST(OperationCheck, ReportsBitsThatDifferBetweenRuns) {
    int runs = 0;
    const OperationCheck check = check_with(fault_of_run_7(1, runs), convolution());
    EXPECT_FALSE(check.bits_are_equal);
    EXPECT_TRUE(check.passed);
    ASSERT_FALSE(check.passes.empty());
    EXPECT_EQ(check.passes[0].low_seconds.reason, "fewer than 6 runs");
}

TEST(OperationCheck, FailsIfBitsDifferOnARepeatableDevice) {
    int runs = 0;
    FaultyDevice device(fault_of_run_7(1, runs), true);
    const OperationCheck check = check_operation(convolution(), device, {}, 1);
    EXPECT_FALSE(check.bits_are_equal);
    EXPECT_FALSE(check.passed);
    EXPECT_TRUE(failures(check).empty());
}

TEST(OperationCheck, FindsAnErrorThatOnlyALaterRunHas) {
    int runs = 0;
    const OperationCheck check = check_with(fault_of_run_7(100, runs), convolution());
    EXPECT_FALSE(check.passed);
    const auto failed = failures(check);
    ASSERT_EQ(failed.size(), 1U);
    EXPECT_EQ(failed.at("forward: output").place, Place({0, 0, 0, 3}));
}

ValidateReport report_with(OperationCheck check) {
    ValidateReport report;
    report.device = "a CPU";
    report.model = "resnet50_v1.5";
    report.precision = "fp32";
    report.batch_size = 2;
    report.configured_batch_size = 64;
    report.runs = 1;
    report.passed = check.passed;
    report.operations = {std::move(check)};
    return report;
}

TEST(ValidateText, EndsWithOperationPassAndPlaceOfTheWorst) {
    const ValidateReport report = report_with(check_with(
        [](const KernelTensors& tensors, ops::Pass pass) {
            if (pass == ops::Pass::weight_gradient) tensors.parameter_gradients[0][134] = 1e9f;
        },
        convolution()));
    const std::string text = validate_text(report);
    EXPECT_NE(text.find("batch 2 (configured: 64, reduced for naive loops)"), std::string::npos);
    EXPECT_NE(text.find("FAILED parameter_gradient 0 at (4, 2, 2, 2) of (5, 3, 3, 3): 1e+09"),
              std::string::npos);
    const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
    EXPECT_TRUE(last.starts_with("VALIDATE FAILED: 1 of 1 operation in fp32 on a CPU; worst "))
        << last;
    EXPECT_TRUE(last.ends_with(" of its tolerance\n")) << last;
    const std::string worst = wrap(
        "Worst: convolution odd, weight_gradient, parameter_gradient 0 at (4, 2, 2, 2) of (5, 3, "
        "3, 3)",
        2);
    EXPECT_NE(text.find("\n" + worst + "\n" + last), std::string::npos) << text;
}

TEST(ValidateJson, HasNullAndAReasonForAMissingNumber) {
    const ValidateReport report =
        report_with(check_with([](const KernelTensors&, ops::Pass) {}, convolution()));
    const auto json = nlohmann::json::parse(validate_json(report));
    EXPECT_EQ(json["schema"], "hpcai500-validate/1");
    const auto& pass = json["operations"][0]["passes"][0];
    EXPECT_TRUE(pass["low_seconds"].is_null());
    EXPECT_EQ(pass["low_seconds_reason"], "fewer than 6 runs");
    EXPECT_EQ(pass["tensors"][0]["shape"], Place({2, 4, 5, 5}));
}

TEST(Validate, PassesForASegmentationModel) {
    const config::Config config = config::parse(
        "workload: {kind: climate_segmentation, model: segmentation_net, classes: 4, "
        "channels: 16, image_size: 64, image_width: 96}\n"
        "bagging: {out_of_bag: false}\ndata: {kind: climate_synthetic}\n"
        "training: {batch_size: 4}\ndevice: {kind: cpu}\n",
        "f.yaml", {});
    const auto log = make_logger("validate", "");
    const ValidateReport report = run_validate(config, {.runs = 1, .quick = true}, *log);
    EXPECT_TRUE(report.passed) << validate_text(report);
    EXPECT_TRUE(report.unchecked.empty());
}

}  // namespace
}  // namespace hpcai::speed
