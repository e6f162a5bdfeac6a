// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <hpcai/storage/file.hpp>
#include <hpcai/verification/verify.hpp>

namespace hpcai::verification {

/// Looks into a result directory and notes what does not hold there.
class Inspector {
public:
    explicit Inspector(std::filesystem::path directory) : directory_(std::move(directory)) {}

    const std::filesystem::path& directory() const { return directory_; }
    std::vector<Finding> take() { return std::move(findings_); }

    template <typename... Arguments>
    void find(const std::string& file, fmt::format_string<Arguments...> format,
              Arguments&&... arguments) {
        findings_.push_back({file, fmt::format(format, std::forward<Arguments>(arguments)...)});
    }

    /// The text of `file`, or nothing and a finding where it cannot be read.
    std::optional<std::string> text_of(const std::string& file);

    /// What `read` returns; nothing and a finding about `file` where it throws Error.
    template <typename Read>
    auto attempt(const std::string& file, const Read& read) -> std::optional<decltype(read())> {
        try {
            return read();
        } catch (const Error& error) {
            note(file, error);
        }
        return std::nullopt;
    }

    /// Finds the first line of `text`, the content of `file`, that is not as in `expected`.
    void compare_lines(const std::string& file, std::string_view text, std::string_view expected);

    /// Finds every key of the JSON text `stored` that has another value in `expected`, the same
    /// after the rest of the result was recomputed. `source` says where a key's value comes from.
    void compare_keys(const std::string& file, const std::string& stored,
                      const std::string& expected,
                      const std::function<std::string(const std::string& key)>& source);

private:
    void note(const std::string& file, const Error& error);

    std::filesystem::path directory_;
    std::vector<Finding> findings_;
};

}  // namespace hpcai::verification
