// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include <hpcai/storage/safetensors.hpp>
#include <hpcai/training/snapshot.hpp>

namespace hpcai::training {
namespace {

template <typename T>
std::vector<T> values_of(const storage::StoredTensor& tensor) {
    std::vector<T> values(tensor.bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
}

template <typename T>
storage::StoredTensor tensor_of(const std::string& name, storage::ElementType type,
                                const std::vector<T>& values) {
    return {name, type, {std::ssize(values)}, std::as_bytes(std::span(values))};
}

template <typename T>
const T& find(const Snapshot& snapshot, const std::map<std::string, T, std::less<>>& all,
              std::string_view name) {
    const auto found = all.find(name);
    if (found == all.end()) snapshot.fail(name, "is missing");
    return found->second;
}

template <typename T>
std::span<const T> require_count(const Snapshot& snapshot, std::string_view name,
                                 std::span<const T> values, std::size_t count) {
    if (values.size() != count) {
        snapshot.fail(name, fmt::format("expected {} values, got {}", count, values.size()));
    }
    return values;
}

}  // namespace

void Snapshot::fail(std::string_view name, const std::string& why) const {
    throw Error(ExitCode::data, fmt::format("'{}': {}: {}", name_, name, why));
}

std::span<const float> Snapshot::floats(std::string_view name, std::size_t count) const {
    return require_count<float>(*this, name, find(*this, floats_, name), count);
}

std::span<const double> Snapshot::table(std::string_view name, std::size_t columns) const {
    const std::vector<double>& all = find(*this, numbers_, name);
    if (all.size() % columns != 0) {
        fail(name, fmt::format("expected rows of {} values, got {} values", columns, all.size()));
    }
    return all;
}

std::span<const double> Snapshot::numbers(std::string_view name, std::size_t count) const {
    return require_count<double>(*this, name, find(*this, numbers_, name), count);
}

const std::string& Snapshot::text(std::string_view name) const {
    return find(*this, texts_, name);
}

std::int64_t Snapshot::integer(std::string_view name, double value, std::int64_t min,
                               std::int64_t max) const {
    const bool is_integer = std::isfinite(value) && value == std::floor(value);
    if (!is_integer || value < static_cast<double>(min) || value > static_cast<double>(max)) {
        fail(name, fmt::format("expected a whole number from {} to {}, got {}", min, max, value));
    }
    return static_cast<std::int64_t>(value);
}

void Snapshot::write(const std::filesystem::path& path) const {
    std::vector<storage::StoredTensor> tensors;
    for (const auto& [name, values] : floats_) {
        tensors.push_back(tensor_of(name, storage::ElementType::f32, values));
    }
    for (const auto& [name, values] : numbers_) {
        tensors.push_back(tensor_of(name, storage::ElementType::f64, values));
    }
    storage::write_safetensors(path, tensors, {texts_.begin(), texts_.end()});
}

Snapshot Snapshot::read(const std::filesystem::path& path) {
    const storage::SafetensorsFile file = storage::read_safetensors(path);
    Snapshot snapshot(path.string());
    for (const storage::StoredTensor& tensor : file.tensors()) {
        if (tensor.type == storage::ElementType::f32) {
            snapshot.put(tensor.name, values_of<float>(tensor));
        } else if (tensor.type == storage::ElementType::f64) {
            snapshot.put_numbers(tensor.name, values_of<double>(tensor));
        } else {
            snapshot.fail(tensor.name, "expected values of type F32 or F64");
        }
    }
    snapshot.texts_.insert(file.metadata().begin(), file.metadata().end());
    return snapshot;
}

}  // namespace hpcai::training
