// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <hpcai/reference/naive_ops.hpp>
#include <hpcai/storage/safetensors.hpp>

#include "device/detection_cases.hpp"

/// The operations as PyTorch computed them in double. scripts/reference/op_cases.py and
/// detection_cases.py describe the files.
namespace hpcai::device {

struct ReferenceCase {
    std::string name;
    naive::Problem problem;
    naive::Solution expected;
};

/// The elements of a stored tensor as doubles.
class StoredNumbers {
public:
    explicit StoredNumbers(const storage::StoredTensor& tensor) : tensor_(tensor) {}

    naive::Tensor read() const {
        naive::Tensor result;
        result.shape = shape();
        for (std::int64_t i = 0; i < result.shape.elements(); ++i) {
            result.values.push_back(at(static_cast<std::size_t>(i)));
        }
        return result;
    }

private:
    tensor::Shape shape() const {
        tensor::Shape shape;
        switch (tensor_.shape.size()) {
            case 1:
                return {tensor_.shape[0]};
            case 2:
                return {tensor_.shape[0], tensor_.shape[1]};
            case 3:
                return {tensor_.shape[0], tensor_.shape[1], tensor_.shape[2]};
            case 4:
                return {tensor_.shape[0], tensor_.shape[1], tensor_.shape[2], tensor_.shape[3]};
            default:
                throw std::runtime_error(tensor_.name + ": unexpected rank");
        }
    }
    template <typename Number>
    Number raw(std::size_t index) const {
        Number number;
        std::memcpy(&number, tensor_.bytes.data() + index * sizeof number, sizeof number);
        return number;
    }
    double at(std::size_t index) const {
        switch (tensor_.type) {
            case storage::ElementType::f64:
                return raw<double>(index);
            case storage::ElementType::f32:
                return raw<float>(index);
            case storage::ElementType::bf16:
                return std::bit_cast<float>(std::uint32_t{raw<std::uint16_t>(index)} << 16);
            case storage::ElementType::i32:
                return raw<std::int32_t>(index);
            case storage::ElementType::u8:
                return raw<std::uint8_t>(index);
            default:
                throw std::runtime_error(tensor_.name + ": unexpected type");
        }
    }
    const storage::StoredTensor& tensor_;
};

/// Returns the operation that a case's settings and tensors describe.
inline ops::Operation operation_of(const nlohmann::json& settings, const naive::Problem& problem) {
    using Json = nlohmann::json;
    if (const auto detection = detection_of(settings, problem)) return *detection;
    const tensor::Shape& input = problem.inputs[0].shape;
    const auto parameter = [&](int axis) { return problem.parameters[0].shape[axis]; };
    const std::map<std::string, std::function<ops::Operation(const Json&)>> makers{
        {"input_normalize",
         [&](const Json& at) {
             return ops::InputNormalize{input, at.at("mean"), at.at("standard_deviation")};
         }},
        {"convolution",
         [&](const Json& at) {
             return ops::Convolution{input, parameter(0), parameter(1), at.at("stride"),
                                     at.at("padding")};
         }},
        {"batch_norm",
         [&](const Json& at) {
             return ops::BatchNorm{
                 input,        at.at("epsilon"), at.at("momentum"), at.at("statistics_samples"),
                 at.at("add"), at.at("relu")};
         }},
        {"relu", [&](const Json&) { return ops::Relu{input}; }},
        {"add", [&](const Json&) { return ops::Add{input}; }},
        {"max_pool",
         [&](const Json& at) {
             return ops::MaxPool{input, at.at("kernel"), at.at("stride"), at.at("padding")};
         }},
        {"global_average_pool", [&](const Json&) { return ops::GlobalAveragePool{input}; }},
        {"linear",
         [&](const Json&) {
             return ops::Linear{input, parameter(0)};
         }},
        {"softmax_cross_entropy", [&](const Json& at) {
             return ops::SoftmaxCrossEntropy{input, at.at("label_smoothing")};
         }}};
    return makers.at(settings.at("operation"))(settings);
}

/// One file of cases.
class ReferenceFile {
public:
    /// `name` is relative to tests/data/reference. Throws if the file cannot be read.
    explicit ReferenceFile(const std::string& name) : file_(storage::read_safetensors(path(name))) {
        settings_ = nlohmann::json::parse(file_.metadata().at("reference")).at("cases");
    }

    /// Returns the cases of an operation, by its name in the file. Throws if there are none.
    std::vector<ReferenceCase> cases_of(const std::string& operation) const {
        std::vector<ReferenceCase> found;
        for (const auto& [name, settings] : settings_.items()) {
            if (settings.at("operation") == operation) found.push_back(read(name, settings));
        }
        if (found.empty()) throw std::runtime_error("no cases of " + operation);
        return found;
    }

private:
    static std::string path(const std::string& name) {
        const char* root = std::getenv("HPCAI500_SOURCE_DIR");
        if (root == nullptr) throw std::runtime_error("HPCAI500_SOURCE_DIR is not set");
        return std::string(root) + "/tests/data/reference/" + name;
    }

    ReferenceCase read(const std::string& name, const nlohmann::json& settings) const {
        ReferenceCase found{.name = name};
        naive::Problem& problem = found.problem;
        problem.training = settings.value("training", true);
        problem.loss_scale = settings.value("loss_scale", 1.0);
        problem.inputs = list(name + "/input.");
        problem.parameters = list(name + "/parameter.");
        problem.output_gradients = list(name + "/output_gradient.");
        problem.running_mean = one(name + "/running_mean");
        problem.running_variance = one(name + "/running_variance");
        problem.operation = operation_of(settings, problem);
        found.expected = {.output = one(name + "/expected.output"),
                          .losses = one(name + "/expected.losses"),
                          .input_gradients = list(name + "/expected.input_gradient."),
                          .parameter_gradients = list(name + "/expected.parameter_gradient."),
                          .running_mean = one(name + "/expected.running_mean"),
                          .running_variance = one(name + "/expected.running_variance")};
        return found;
    }

    /// Returns the tensor `name`; empty if there is none.
    naive::Tensor one(const std::string& name) const {
        const storage::StoredTensor* tensor = file_.find(name);
        return tensor == nullptr ? naive::Tensor() : StoredNumbers(*tensor).read();
    }
    /// Returns the existing tensors NAME0, NAME1, ...
    std::vector<naive::Tensor> list(const std::string& name) const {
        std::vector<naive::Tensor> found;
        while (file_.find(name + std::to_string(found.size())) != nullptr) {
            found.push_back(one(name + std::to_string(found.size())));
        }
        return found;
    }

    storage::SafetensorsFile file_;
    nlohmann::json settings_;
};

}  // namespace hpcai::device
