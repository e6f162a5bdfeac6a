// SPDX-License-Identifier: Apache-2.0
#include "speed/step_check.hpp"

#include <gtest/gtest.h>

#include <hpcai/config/reader.hpp>
#include <hpcai/speed/validate.hpp>

#include "faulty_kernel.hpp"
#include "storage/temporary_folder.hpp"
#include "support/recording_device.hpp"

namespace hpcai::speed {
namespace {

/// Returns ResNet-50 for images whose feature maps have odd sides.
config::Config small_resnet() {
    return config::parse(
        "workload: {kind: image_classification, model: resnet50_v1.5, classes: 4, image_size: 36}\n"
        "training: {batch_size: 6}\ndevice: {kind: cpu}\n",
        "f.yaml", {});
}

/// The CPU engine with a fault in the kernels of wanted operations.
class DeviceWithFault final : public device::RecordingDevice {
public:
    using Wanted = std::function<bool(const ops::Operation&)>;
    DeviceWithFault(Wanted wanted, Fault fault)
        : RecordingDevice(false), wanted_(std::move(wanted)), fault_(std::move(fault)) {}
    using RecordingDevice::build;
    device::KernelPtr build(const ops::Operation& operation,
                            const device::KernelOptions& options) override {
        device::KernelPtr kernel = RecordingDevice::build(operation, options);
        if (!wanted_(operation)) return kernel;
        return std::make_unique<FaultyKernel>(std::move(kernel), fault_);
    }

private:
    Wanted wanted_;
    Fault fault_;
};

/// The naive loops compute the step once for all tests.
class StepOfResNet50 : public testing::Test {
protected:
    static const StepCheck& step() {
        static const config::Config config = small_resnet();
        static const auto log = make_logger("step", "");
        static const StepCheck check(config, {}, *log);
        return check;
    }
    /// Returns the tensors that fail on a device with a fault, in order.
    template <typename Operation>
    static std::vector<TensorCheck> failures(const std::function<bool(const Operation&)>& wanted,
                                             const Fault& fault) {
        DeviceWithFault device(
            [&](const ops::Operation& operation) {
                const auto* op = std::get_if<Operation>(&operation);
                return op != nullptr && wanted(*op);
            },
            fault);
        std::vector<TensorCheck> failed = step().run(device);
        std::erase_if(failed, [](const TensorCheck& tensor) { return tensor.passed; });
        return failed;
    }
};

TEST_F(StepOfResNet50, PassesOnTheCpu) {
    const auto device = device::make_cpu_device({});
    const std::vector<TensorCheck> tensors = step().run(*device);
    EXPECT_EQ(tensors.size(), 2 * 53U + 1 + 161);
    EXPECT_EQ(tensors.front().tensor, "bn1.running_mean");
    EXPECT_EQ(tensors.back().tensor, "gradient of conv1.weight");
    for (const TensorCheck& tensor : tensors) {
        EXPECT_LT(tensor.severity(), 0.5) << tensor.tensor;
    }
}

TEST_F(StepOfResNet50, NamesTheRunningStatisticsThatAreWrong) {
    const auto failed = failures<ops::BatchNorm>(
        [](const ops::BatchNorm& norm) { return norm.input[3] == 64 && norm.input[1] == 18; },
        [](const KernelTensors& tensors, ops::Pass pass) {
            if (pass == ops::Pass::forward) tensors.running_variance[5] *= 1.001f;
        });
    ASSERT_EQ(failed.size(), 1U);
    EXPECT_EQ(failed[0].tensor, "bn1.running_var");
}

TEST_F(StepOfResNet50, NamesTheBiasWithoutAGradient) {
    const auto failed = failures<ops::Linear>([](const ops::Linear&) { return true; },
                                              [](const KernelTensors& tensors, ops::Pass pass) {
                                                  if (pass == ops::Pass::weight_gradient)
                                                      tensors.parameter_gradients[1][2] = 0;
                                              });
    ASSERT_EQ(failed.size(), 1U);
    EXPECT_EQ(failed[0].tensor, "gradient of fc.bias");
    EXPECT_EQ(failed[0].place, std::vector<std::int64_t>{2});
}

TEST_F(StepOfResNet50, NamesTheFirstParameterAfterAWrongGradientOfAFusedOperation) {
    const auto failed = failures<ops::BatchNorm>(
        [](const ops::BatchNorm& norm) { return norm.add && norm.input[3] == 512; },
        [](const KernelTensors& tensors, ops::Pass pass) {
            if (pass != ops::Pass::input_gradient) return;
            float* const dx = static_cast<float*>(tensors.input_gradients[0]);
            for (int i = 0; i < 512; ++i) dx[i] *= 2;
        });
    ASSERT_FALSE(failed.empty());
    EXPECT_EQ(failed[0].tensor, "gradient of layer2.3.conv3.weight");
}

TEST(StepChecks, PassInBf16) {
    const auto device = device::make_cpu_device({});
    const device::Precision bf16{tensor::DType::bf16};
    if (std::ranges::count(device->compute_dtypes(), bf16.compute) == 0)
        GTEST_SKIP() << "this processor does not compute in bf16";
    const config::Config config = small_resnet();
    const auto log = make_logger("step", "");
    for (const TensorCheck& tensor : StepCheck(config, bf16, *log).run(*device)) {
        EXPECT_LT(tensor.severity(), 1) << tensor.tensor;
        EXPECT_LE(tensor.tolerance, 0.9) << tensor.tensor;
    }
}

TEST(Validate, ChecksAWholeStepOfASegmentationModel) {
    const config::Config config = config::parse(
        "workload: {kind: climate_segmentation, model: segmentation_net, classes: 4, "
        "channels: 16, image_size: 64, image_width: 96}\n"
        "bagging: {out_of_bag: false}\ndata: {kind: climate_synthetic}\n"
        "training: {batch_size: 2, precision: fp32}\ndevice: {kind: cpu}\n",
        "f.yaml", {});
    const auto log = make_logger("validate", "");
    const ValidateReport report = run_validate(config, {.level = 1, .runs = 6}, *log);
    const std::string text = validate_text(report);
    EXPECT_TRUE(report.passed) << text;
    EXPECT_GT(report.overhead.value.value_or(0), 0.5);
    EXPECT_LE(report.low_overhead.value.value_or(9), report.high_overhead.value.value_or(0));
    EXPECT_NE(text.find("\noverhead: step / sum of its operations = "), std::string::npos) << text;
    EXPECT_NE(text.find("\nVALIDATE PASSED: "), std::string::npos) << text;
    EXPECT_NE(text.find(" tensors of a step in fp32 on "), std::string::npos) << text;
}

TEST(Validate, RejectsDetectorsAtLevel1) {
    config::Config config = small_resnet();
    config.workload.model = config::Model::faster_rcnn_r50_fpn;
    const auto log = make_logger("validate", "");
    const std::string message =
        storage::error_of(ExitCode::usage, [&] { run_validate(config, {.level = 1}, *log); });
    EXPECT_NE(message.find("workload.model"), std::string::npos) << message;
}

}  // namespace
}  // namespace hpcai::speed
