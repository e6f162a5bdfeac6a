// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "device/kernel_runner.hpp"
#include "device/reference_cases.hpp"
#include "support/largest_error.hpp"

/// Every operation, forward and backward, compared with PyTorch in double: the naive loops, every
/// device row, and fused operations, which are also compared with their parts on the same device.
namespace hpcai::device {
namespace {

/// An operation of the files of scripts/reference/op_cases.py.
struct Operator {
    std::string operation, file, name;
    std::vector<std::string> parameters;  // for display
    int gradient_roundings = 1;           // of an input gradient
};

void PrintTo(const Operator& which, std::ostream* stream) {
    *stream << which.operation;
}

const std::vector<Operator> kOperators{
    {"input_normalize", "ops_others.safetensors", "normalization of pixels", {}},
    {"convolution", "ops_convolution.safetensors", "convolution", {"filter"}},
    {"batch_norm", "ops_batch_norm.safetensors", "batch normalization", {"scale", "shift"}},
    {"relu", "ops_others.safetensors", "ReLU", {}},
    {"add", "ops_others.safetensors", "addition", {}},
    // Nine windows add to a pixel's gradient.
    {"max_pool", "ops_others.safetensors", "max pooling", {}, 9},
    {"global_average_pool", "ops_others.safetensors", "global average pooling", {}},
    {"linear", "ops_others.safetensors", "fully connected layer", {"weight", "bias"}},
    {"softmax_cross_entropy", "ops_others.safetensors", "softmax cross-entropy", {}}};

/// Returns the error relative to the largest number of `want`; infinite if a value is NaN.
double largest_relative_error(const naive::Tensor& got, const naive::Tensor& want) {
    double largest = 1e-30, error = 0;
    for (std::size_t i = 0; i < want.values.size(); ++i) {
        const double difference = std::abs(got.values[i] - want.values[i]);
        if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
        largest = std::max(largest, std::abs(want.values[i]));
        error = std::max(error, difference);
    }
    return error / largest;
}

/// Collects the largest error of each of an operation's quantities over all cases.
class Errors {
public:
    /// `names` is the format of the quantities' names, with {0} for the operation and {1} for the
    /// quantity.
    Errors(const Operator& which, std::string names) : which_(which), names_(std::move(names)) {}

    void compare(const ReferenceCase& reference, const naive::Solution& got,
                 const Tolerance& tolerance) {
        const naive::Solution& want = reference.expected;
        const bool fp32 =
            which_.operation == "linear" || which_.operation == "softmax_cross_entropy";
        case_ = reference.name;
        add("output", fp32 ? tolerance.fp32 : tolerance.stored, got.output, want.output);
        add("losses", tolerance.fp32, got.losses, want.losses);
        add("running mean", tolerance.fp32, got.running_mean, want.running_mean);
        add("running variance", tolerance.fp32, got.running_variance, want.running_variance);
        for (std::size_t i = 0; i < want.input_gradients.size(); ++i) {
            add("input gradient", which_.gradient_roundings * tolerance.stored,
                got.input_gradients.at(i), want.input_gradients[i]);
        }
        const bool filters = which_.operation == "convolution";
        for (std::size_t i = 0; i < want.parameter_gradients.size(); ++i) {
            add(which_.parameters.at(i) + " gradient", filters ? tolerance.filters : tolerance.fp32,
                got.parameter_gradients.at(i), want.parameter_gradients[i]);
        }
    }

private:
    void add(const std::string& quantity, double tolerance, const naive::Tensor& got,
             const naive::Tensor& want) {
        if (want.values.empty()) return;
        ASSERT_EQ(to_string(got.shape), to_string(want.shape)) << quantity << ", " << case_;
        const std::string number = fmt::format(fmt::runtime(names_), which_.name, quantity);
        tests::LargestError& error = errors_.try_emplace(number, number, tolerance).first->second;
        error.add(largest_relative_error(got, want), case_);
    }

    const Operator& which_;
    std::string names_, case_;
    std::map<std::string, tests::LargestError> errors_;
};

class NaiveOperator : public testing::TestWithParam<Operator> {};

TEST_P(NaiveOperator, AgreesWithPyTorchInDouble) {
    Errors errors(GetParam(), "{0}, naive loops");
    for (const auto& reference : ReferenceFile(GetParam().file).cases_of(GetParam().operation)) {
        errors.compare(reference, naive::solve(reference.problem), {1e-12, 1e-12});
    }
}

INSTANTIATE_TEST_SUITE_P(Each, NaiveOperator, testing::ValuesIn(kOperators),
                         [](const auto& test) { return test.param.operation; });

class OperatorOf : public testing::TestWithParam<std::tuple<Operator, DeviceRow>> {};

TEST_P(OperatorOf, AgreesWithPyTorchInDouble) {
    const auto& [which, row] = GetParam();
    Errors errors(which, "{0} {1}, " + std::string(name_of(row.compute)));
    for (const auto& reference : ReferenceFile(which.file).cases_of(which.operation)) {
        errors.compare(reference, KernelRunner(row, reference.problem).run(), row.tolerance);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, OperatorOf,
                         testing::Combine(testing::ValuesIn(kOperators),
                                          testing::ValuesIn(device_rows())),
                         [](const auto& test) {
                             return std::get<0>(test.param).operation + "_" +
                                    std::get<1>(test.param).name;
                         });

/// Returns the results of the kernels of BatchNorm, Add and Relu, one after the other.
naive::Solution solve_in_parts(const DeviceRow& row, const naive::Problem& fused) {
    const auto& op = std::get<ops::BatchNorm>(fused.operation);
    naive::Problem norm = fused;
    norm.inputs = {fused.inputs[0]};
    auto& plain = std::get<ops::BatchNorm>(norm.operation);
    plain.add = plain.relu = false;
    naive::Problem add = norm, relu = norm;
    add.operation = ops::Add{op.input};
    relu.operation = ops::Relu{op.input};
    // The forward passes, with gradients that are not read.
    relu.inputs = {KernelRunner(row, norm).run().output};
    if (op.add) {
        add.inputs = {relu.inputs[0], fused.inputs[1]};
        relu.inputs = {KernelRunner(row, add).run().output};
    }
    const naive::Solution gated = KernelRunner(row, relu).run();
    norm.output_gradients = add.output_gradients = {gated.input_gradients[0]};
    if (!fused.training) norm.output_gradients = add.output_gradients = {};
    naive::Solution result = KernelRunner(row, norm).run();
    result.output = gated.output;
    if (op.add) result.input_gradients.push_back(KernelRunner(row, add).run().input_gradients[1]);
    return result;
}

class FusedBatchNorm : public testing::TestWithParam<DeviceRow> {};

TEST_P(FusedBatchNorm, AgreesWithItsPartsOnTheSameDevice) {
    const DeviceRow& row = GetParam();
    const Operator which{"batch_norm",
                         "ops_batch_norm.safetensors",
                         "fused batch normalization",
                         {"scale", "shift"}};
    Errors errors(which, "{0} {1} against its parts, " + std::string(name_of(row.compute)));
    for (const auto& [name, problem, unused] : ReferenceFile(which.file).cases_of("batch_norm")) {
        if (!std::get<ops::BatchNorm>(problem.operation).relu) continue;
        ReferenceCase parts{name, problem, solve_in_parts(row, problem)};
        if (!problem.training) parts.expected.input_gradients.clear();
        if (!problem.training) parts.expected.parameter_gradients.clear();
        // The fused kernel rounds once; the separate kernels round up to twice.
        errors.compare(parts, KernelRunner(row, problem).run(), rounded(3, row.tolerance));
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, FusedBatchNorm, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::device
