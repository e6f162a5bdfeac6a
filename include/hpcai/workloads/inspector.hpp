// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>

namespace hpcai::workloads {

/// A problem in a result directory. `text` has no legal values, because these would help to make a
/// manipulated result consistent.
struct Finding {
    std::string file;              // relative to the directory
    std::string text;              // the problem
    std::string explanation = {};  // the problem and the legal value; empty: `text` is all
    const std::string& shown(bool explain) const {
        return explain && !explanation.empty() ? explanation : text;
    }
    bool operator==(const Finding&) const = default;
};

/// Reads a result directory and collects findings about it.
class Inspector {
public:
    /// Lists the directory without following links; adds a finding on failure.
    explicit Inspector(std::filesystem::path directory);

    /// All entries except folders: relative path, and whether it is a regular file.
    const std::map<std::string, bool>& entries() const { return entries_; }
    bool has(const std::string& file) const { return entries_.contains(file); }
    std::vector<Finding> take_findings() { return std::move(findings_); }

    /// Adds a finding about `file`, as one printable line. In the line, "; must" precedes the legal
    /// value and ", according to" precedes its source.
    template <typename... Arguments>
    void report(const std::string& file, fmt::format_string<Arguments...> format,
                Arguments&&... arguments) {
        add(file, fmt::format(format, std::forward<Arguments>(arguments)...));
    }

    /// Returns the path of `file`. Throws Error(data) if it is missing, not a regular file (links
    /// are not followed) or has more than `limit_bytes` bytes.
    std::filesystem::path checked_path(
        const std::string& file,
        std::size_t limit_bytes = std::numeric_limits<std::size_t>::max()) const;

    /// Reads `file`. Throws Error(data) as checked_path, or if it cannot be read.
    std::vector<std::byte> read_bytes(const std::string& file, std::size_t limit_bytes) const;

    /// Returns the text of `file`; nothing, with a finding, if it cannot be read.
    std::optional<std::string> read_text(const std::string& file);

    /// Calls `work` and returns its result in an optional; void if `work` returns nothing. If
    /// `work` throws Error, adds a finding about `file`; an optional is then empty.
    template <typename Work>
    auto attempt(const std::string& file, const Work& work) {
        using Result = decltype(work());
        constexpr bool kHasResult = !std::is_void_v<Result>;
        try {
            if constexpr (kHasResult) {
                return std::optional<Result>(work());
            } else {
                work();
            }
        } catch (const Error& error) {
            add(file, error.what());
        }
        if constexpr (kHasResult) return std::optional<Result>();
    }

    /// Parses `file` and adds a finding if its text differs from `write(value)` of the parsed
    /// value. Returns the value; nothing, with a finding, if the file cannot be read or parsed.
    template <typename Parse, typename Write>
    auto parse(const std::string& file, const Parse& parse, const Write& write)
        -> std::optional<decltype(parse(file, file))> {
        const std::optional<std::string> text = read_text(file);
        if (!text) return std::nullopt;
        auto value = attempt(file, [&] { return parse(*text, file); });
        if (value) compare_lines(file, *text, write(*value));
        return value;
    }

    /// Adds a finding about the first line of `text`, from `file`, that differs from `expected`.
    void compare_lines(const std::string& file, std::string_view text, std::string_view expected);

    /// Adds a finding for every key whose values in the JSON text `stored` and in `expected`, the
    /// recomputed text, differ. `source` returns "according to ..." for a key, or an empty text.
    void compare_keys(const std::string& file, const std::string& stored,
                      const std::string& expected,
                      const std::function<std::string(const std::string& key)>& source);

private:
    void add(const std::string& file, const std::string& text);
    void list_entries(const std::filesystem::path& folder);

    std::filesystem::path directory_;
    std::map<std::string, bool> entries_;
    std::vector<Finding> findings_;
};

}  // namespace hpcai::workloads
