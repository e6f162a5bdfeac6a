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
#include <hpcai/storage/file.hpp>

namespace hpcai::workloads {

/// What does not hold in a result directory.
struct Finding {
    std::string file;  // relative to the directory
    std::string text;  // what it says and what it must be
    bool operator==(const Finding&) const = default;
};

/// Looks into a result directory and notes what does not hold there.
class Inspector {
public:
    /// Lists the directory, through no link; what cannot be listed is a finding.
    explicit Inspector(std::filesystem::path directory);

    /// All that is no folder, by its path in the directory, and whether it is a regular file.
    const std::map<std::string, bool>& entries() const { return entries_; }
    bool has(const std::string& file) const { return entries_.contains(file); }
    std::vector<Finding> take() { return std::move(findings_); }

    template <typename... Arguments>
    void find(const std::string& file, fmt::format_string<Arguments...> format,
              Arguments&&... arguments) {
        add(file, fmt::format(format, std::forward<Arguments>(arguments)...));
    }

    /// Where `file` lies. Throws Error(data) where it is missing, no regular file (no link is
    /// followed) or has more than so many bytes.
    std::filesystem::path path_of(
        const std::string& file,
        std::size_t limit_bytes = std::numeric_limits<std::size_t>::max()) const;

    /// The bytes of `file`, at most so many. Throws Error(data).
    std::vector<std::byte> bytes_of(const std::string& file, std::size_t limit_bytes) const;

    /// The text of `file`, or nothing and a finding where it cannot be read.
    std::optional<std::string> text_of(const std::string& file);

    /// What `read` returns; nothing and a finding about `file` where it throws Error.
    template <typename Read>
    auto attempt(const std::string& file, const Read& read) -> std::optional<decltype(read())>
    requires(!std::is_void_v<decltype(read())>) {
        try {
            return read();
        } catch (const Error& error) {
            note(file, error);
        }
        return std::nullopt;
    }

    /// Calls `check`; a finding about `file` where it throws Error.
    template <typename Check>
    void attempt(const std::string& file,
                 const Check& check) requires std::is_void_v<decltype(check())> {
        try {
            check();
        } catch (const Error& error) {
            note(file, error);
        }
    }

    /// What `parse` makes of the text of `file`, which must be what `write` makes of that. Nothing,
    /// and a finding, where it cannot be read.
    template <typename Parse, typename Write>
    auto parse(const std::string& file, const Parse& parse, const Write& write)
        -> std::optional<decltype(parse(file, file))> {
        const std::optional<std::string> text = text_of(file);
        if (!text) return std::nullopt;
        auto value = attempt(file, [&] { return parse(*text, file); });
        if (value) compare_lines(file, *text, write(*value));
        return value;
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
    /// In one line, whatever the names and texts are.
    void add(const std::string& file, const std::string& text);
    void list(const std::filesystem::path& folder);

    std::filesystem::path directory_;
    std::map<std::string, bool> entries_;
    std::vector<Finding> findings_;
};

}  // namespace hpcai::workloads
