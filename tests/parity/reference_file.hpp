// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <hpcai/storage/safetensors.hpp>

#include "fingerprint.hpp"

namespace hpcai::parity {

/// A file of scripts/reference/resnet50_cases.py: tensors of fp32 and fp64. All functions throw if
/// it cannot be read.
class ReferenceFile {
public:
    /// `name` is relative to tests/data/reference.
    explicit ReferenceFile(const std::string& name)
        : file_(storage::read_safetensors(folder() + name)) {}

    std::vector<double> read(const std::string& name) const {
        const storage::StoredTensor* tensor = file_.find(name);
        if (tensor == nullptr) throw std::runtime_error("no reference for " + name);
        return tensor->type == storage::ElementType::f64 ? numbers<double>(*tensor)
                                                         : numbers<float>(*tensor);
    }
    Fingerprint fingerprint(const std::string& name) const { return Fingerprint(read(name)); }

    /// Returns the length by which the error of `role` + `parameter` is divided: the parameter's
    /// own length, and for the shift of a normalization at least the length of its scale. The next
    /// normalization removes some shifts, so their gradient is zero except for rounding.
    double yardstick(const std::string& role, const std::string& parameter) const {
        const double own = fingerprint(role + parameter).length();
        if (!parameter.ends_with(".bias") || parameter == "fc.bias") return own;
        const std::string norm = parameter.substr(0, parameter.size() - 4);
        return std::max(own, fingerprint(role + norm + "weight").length());
    }

private:
    static std::string folder() {
        const char* root = std::getenv("HPCAI500_SOURCE_DIR");
        if (root == nullptr) throw std::runtime_error("HPCAI500_SOURCE_DIR is not set");
        return std::string(root) + "/tests/data/reference/";
    }

    template <typename Number>
    static std::vector<double> numbers(const storage::StoredTensor& tensor) {
        std::vector<Number> values(tensor.bytes.size() / sizeof(Number));
        std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(Number));
        return {values.begin(), values.end()};
    }

    storage::SafetensorsFile file_;
};

}  // namespace hpcai::parity
