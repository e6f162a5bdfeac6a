// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/workloads/inspector.hpp>

namespace hpcai::workloads {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kTextLimitBytes = std::size_t{1} << 30;

/// Returns the text as one line, truncated to a limited length.
std::string excerpt(std::string_view text) {
    constexpr std::size_t kMaxChars = 100;
    const std::string line = printable(text.substr(0, kMaxChars));
    return text.size() > kMaxChars ? line + "..." : line;
}

/// Calls body(key, stored, expected) for every value that differs.
template <typename Body>
void for_each_difference(const ordered_json& stored, const ordered_json& expected,
                         const std::string& key, const Body& body) {
    if (stored.is_object() && expected.is_object()) {
        std::set<std::string> names;
        for (const auto& [name, value] : stored.items()) names.insert(name);
        for (const auto& [name, value] : expected.items()) names.insert(name);
        for (const std::string& name : names) {
            const ordered_json absent = "nothing";
            for_each_difference(stored.contains(name) ? stored[name] : absent,
                                expected.contains(name) ? expected[name] : absent,
                                key.empty() ? name : key + "." + name, body);
        }
        return;
    }
    if (stored.is_array() && expected.is_array() && stored.size() == expected.size()) {
        for (std::size_t index = 0; index < stored.size(); ++index) {
            for_each_difference(stored[index], expected[index], fmt::format("{}[{}]", key, index),
                                body);
        }
        return;
    }
    if (stored != expected) body(key, stored, expected);
}

std::string_view next_line(std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    return line;
}

}  // namespace

Inspector::Inspector(std::filesystem::path directory) : directory_(std::move(directory)) {
    list_entries(directory_);
}

void Inspector::list_entries(const std::filesystem::path& folder) {
    try {
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            const bool is_link = entry.is_symlink();
            if (entry.is_directory() && !is_link) {
                list_entries(entry.path());
            } else {
                const auto name = entry.path().lexically_relative(directory_).generic_string();
                entries_[name] = entry.is_regular_file() && !is_link;
            }
        }
    } catch (const std::filesystem::filesystem_error& error) {
        report(folder.lexically_relative(directory_).generic_string(), "cannot be listed: {}",
               error.code().message());
    }
}

std::filesystem::path Inspector::checked_path(const std::string& file,
                                              std::size_t limit_bytes) const {
    const auto found = entries_.find(file);
    require(found != entries_.end(), ExitCode::data, "is missing");
    require(found->second, ExitCode::data, "is not a regular file");
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(directory_ / file, error);
    require(error || bytes <= limit_bytes, ExitCode::data, "has {} bytes; must have at most {}",
            bytes, limit_bytes);
    return directory_ / file;
}

std::vector<std::byte> Inspector::read_bytes(const std::string& file,
                                             std::size_t limit_bytes) const {
    return storage::read_file_bytes(checked_path(file, limit_bytes), limit_bytes);
}

std::optional<std::string> Inspector::read_text(const std::string& file) {
    return attempt(
        file, [&] { return std::string(storage::text_of(read_bytes(file, kTextLimitBytes))); });
}

void Inspector::add(const std::string& file, const std::string& text) {
    const std::string line = printable(text);
    const std::size_t legal = line.find("; must"), source = line.rfind(", according to");
    Finding& finding = findings_.emplace_back(Finding{printable(file), line});
    if (legal == std::string::npos) return;
    finding.explanation = line;
    finding.text = line.substr(0, legal) + ", which is wrong";
    if (source != std::string::npos && source > legal) finding.text += line.substr(source);
}

void Inspector::compare_lines(const std::string& file, std::string_view text,
                              std::string_view expected) {
    if (text == expected) return;
    constexpr std::ptrdiff_t kContext = 30;
    for (std::size_t number = 1; !text.empty() || !expected.empty(); ++number) {
        const bool is_missing = text.empty(), is_surplus = expected.empty();
        std::string_view line = next_line(text), expected_line = next_line(expected);
        if (line == expected_line && !is_missing && !is_surplus) continue;
        const auto common = std::ranges::mismatch(line, expected_line).in1 - line.begin();
        if (common > kContext) {  // print only the end of a long common prefix
            line.remove_prefix(static_cast<std::size_t>(common - kContext));
            expected_line.remove_prefix(static_cast<std::size_t>(common - kContext));
        }
        report(file, "line {} is {}; must be {}", number,
               is_missing ? "missing" : "\"" + excerpt(line) + "\"",
               is_surplus ? "absent" : "\"" + excerpt(expected_line) + "\"");
        return;
    }
    report(file, "the last line has no newline");
}

void Inspector::compare_keys(const std::string& file, const std::string& stored,
                             const std::string& expected,
                             const std::function<std::string(const std::string& key)>& source) {
    if (stored == expected) return;
    for_each_difference(
        ordered_json::parse(stored), ordered_json::parse(expected), "",
        [&](const std::string& key, const ordered_json& actual, const ordered_json& wanted) {
            constexpr auto kReplace = ordered_json::error_handler_t::replace;
            const std::string origin = source(key);
            report(file, "{} is {}; must be {}{}", key,
                   excerpt(actual.dump(-1, ' ', false, kReplace)),
                   excerpt(wanted.dump(-1, ' ', false, kReplace)),
                   origin.empty() ? "" : ", " + origin);
        });
}

}  // namespace hpcai::workloads
