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

/// Named arrays in host memory: what a rank keeps of a training between two of its steps. What is
/// no fp32 number is a double, which holds whole numbers up to 2^53.
class Snapshot {
public:
    /// `name` stands in messages.
    explicit Snapshot(std::string name = "snapshot") : name_(std::move(name)) {}

    /// A name is put once, of either kind.
    void put(const std::string& name, std::vector<float> values) {
        floats_[name] = std::move(values);
    }
    void put_numbers(const std::string& name, std::vector<double> values) {
        numbers_[name] = std::move(values);
    }
    void put_text(const std::string& name, std::string text) { texts_[name] = std::move(text); }

    /// Each throws Error(data) that names file and array where it is missing or does not have
    /// `count` values.
    std::span<const float> floats(std::string_view name, std::size_t count) const;
    std::span<const double> numbers(std::string_view name, std::size_t count) const;
    /// The size may be any multiple of `columns`.
    std::span<const double> table(std::string_view name, std::size_t columns) const;
    const std::string& text(std::string_view name) const;
    /// Throws Error(data) unless `value`, of the array `name`, is whole and in the range.
    std::int64_t whole(std::string_view name, double value, std::int64_t least,
                       std::int64_t most) const;
    /// Throws Error(data) that names file and array.
    [[noreturn]] void refuse(std::string_view name, const std::string& why) const;

    /// Writes safetensors, durably. Throws as storage::write_safetensors does.
    void write(const std::filesystem::path& path) const;
    /// What write() wrote. Throws Error(data) naming the file, and the array where it is one.
    static Snapshot read(const std::filesystem::path& path);

private:
    std::string name_;
    std::map<std::string, std::vector<float>, std::less<>> floats_;
    std::map<std::string, std::vector<double>, std::less<>> numbers_;
    std::map<std::string, std::string, std::less<>> texts_;
};

}  // namespace hpcai::training
