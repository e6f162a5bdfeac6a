// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hpcai::training {

/// Named arrays in host memory: the state of one rank's training between two steps. Numbers are
/// fp32 or doubles, which are exact for integers up to 2^53.
class Snapshot {
public:
    /// `name` is used in error messages.
    explicit Snapshot(std::string name = "snapshot") : name_(std::move(name)) {}

    /// Each name may be used only once, for an array or a text.
    void put(const std::string& name, std::vector<float> values) {
        floats_[name] = std::move(values);
    }
    void put_numbers(const std::string& name, std::vector<double> values) {
        numbers_[name] = std::move(values);
    }
    void put_text(const std::string& name, std::string text) { texts_[name] = std::move(text); }

    /// Return an array. Throw Error(data) with file and array unless it has `count` values.
    std::span<const float> floats(std::string_view name, std::size_t count) const;
    std::span<const double> numbers(std::string_view name, std::size_t count) const;
    /// Returns all rows of `columns` values.
    std::span<const double> table(std::string_view name, std::size_t columns) const;
    const std::string& text(std::string_view name) const;
    /// Returns `value`, which comes from the array `name`, as an integer. Throws Error(data) unless
    /// it is an integer from `min` to `max`.
    std::int64_t integer(std::string_view name, double value, std::int64_t min,
                         std::int64_t max) const;
    /// Throws Error(data) with file, array and `why`.
    [[noreturn]] void fail(std::string_view name, const std::string& why) const;

    /// Writes a safetensors file durably. Throws as storage::write_safetensors does.
    void write(const std::filesystem::path& path) const;
    /// Reads a file of write(). Throws Error(data) with the file, and the array if one is invalid.
    static Snapshot read(const std::filesystem::path& path);

private:
    std::string name_;
    std::map<std::string, std::vector<float>, std::less<>> floats_;
    std::map<std::string, std::vector<double>, std::less<>> numbers_;
    std::map<std::string, std::string, std::less<>> texts_;
};

}  // namespace hpcai::training
