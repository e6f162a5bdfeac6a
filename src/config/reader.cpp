// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <hpcai/base/error.hpp>
#include <hpcai/config/reader.hpp>

#include "document.hpp"
#include "values.hpp"

namespace hpcai::config {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;

void check_size(std::size_t bytes, const std::string& file_name) {
    require(bytes <= kMaxFileBytes, ExitCode::usage,
            "{}: expected a configuration of at most 1 MiB, got more", file_name);
}

class ConfigReader {
public:
    void read(const Sources& sources) {
        for (const std::string& file : sources.files) read_file_text(read_file(file), file);
        for (const std::string& given : sources.overrides) apply_override(given);
    }

    void read_file_text(const std::string& yaml, const std::string& file_name) {
        check_size(yaml.size(), file_name);
        file_name_ = file_name;
        const Origin origin{file_name};
        const Node document = parse_document(yaml, origin, "");
        require(document.kind == NodeKind::mapping || document.kind == NodeKind::null,
                ExitCode::usage, "{}: expected sections of keys, got a {}",
                origin.at(document.position), document.kind == NodeKind::list ? "list" : "value");
        for (const Entry& section : document.entries) read_section(section, origin);
    }

    void apply_override(const std::string& given) {
        const std::string where = "--set " + message_text(given);
        const Origin origin{where, false};
        check_size(given.size(), where);
        check_characters(given, origin);
        const auto equals = given.find('=');
        const auto dot = given.find('.');
        const std::string known = full_name_of(given.substr(0, equals));
        require(equals != std::string::npos && dot < equals, ExitCode::usage,
                "{}: expected section.key=value, got {}{}", where, in_quotes(given),
                known.empty() ? ", such as training.batch_size=64"
                              : fmt::format("; did you mean '{}=...'?", known));
        const Key& key =
            require_key(given.substr(0, dot), given.substr(dot + 1, equals - dot - 1), where);
        require(overridden_.insert(key.full_name()).second, ExitCode::usage,
                "{}: {}: expected each key once, got it again", where, key.full_name());
        const std::string text = given.substr(equals + 1);
        set(key, override_value(key, text, origin), origin);
        locations_[key.full_name()] = where;
    }

    /// Returns "file:line:column: " or "--set a.b=v: " of a key that is set, else "".
    std::string location_of(const std::string& full_name) const {
        const auto found = locations_.find(full_name);
        return found == locations_.end() ? "" : found->second + ": ";
    }

    Config finish() const {
        check_consistency(config_, [this](const std::string& full_name) {
            const auto found = locations_.find(full_name);
            return found == locations_.end() ? file_name_ : found->second;
        });
        return config_;
    }

private:
    void read_section(const Entry& section, const Origin& origin) {
        require_section(section.name, origin.at(section.position));
        const Node& body = section.value;
        require(body.kind == NodeKind::mapping || body.kind == NodeKind::null, ExitCode::usage,
                "{}: {}: expected keys with values, got {}", origin.at(body.position), section.name,
                body.kind == NodeKind::list ? "a list" : in_quotes(body.text));
        for (const Entry& entry : body.entries) {
            const Key& key = require_key(section.name, entry.name, origin.at(entry.position));
            set(key, entry.value, origin);
            locations_[key.full_name()] = origin.at(entry.value.position);
        }
    }

    /// On a command line, a string needs no quotes, because it is not parsed as YAML.
    static Node override_value(const Key& key, const std::string& text, const Origin& origin) {
        if (key.type != KeyType::text) return parse_document(text, origin, key.full_name());
        return {.kind = NodeKind::scalar, .position = {}, .text = text, .quoted = true};
    }

    void set(const Key& key, const Node& value, const Origin& origin) {
        key.set(config_, read_value(key, value, origin));
    }

    std::string file_name_ = "defaults";  // of the last file
    Config config_;
    std::map<std::string, std::string> locations_;  // of keys that are set
    std::set<std::string> overridden_;
};

}  // namespace

Config parse(const std::string& yaml, const std::string& file_name,
             const std::vector<std::string>& overrides) {
    ConfigReader reader;
    reader.read_file_text(yaml, file_name);
    for (const std::string& given : overrides) reader.apply_override(given);
    const Config config = reader.finish();
    require(config.workload.classes > 0, ExitCode::usage,
            "{}: workload.classes: expected an integer, got 'auto'", file_name);
    return config;
}

Config load(const Sources& sources) {
    ConfigReader reader;
    reader.read(sources);
    return reader.finish();
}

std::string locate(const Sources& sources, const std::string& message) {
    std::error_code ignored;
    for (const std::string& file : sources.files)  // a pipe can be read only once
        if (!std::filesystem::is_regular_file(file, ignored)) return message;
    try {
        ConfigReader reader;
        reader.read(sources);
        return reader.location_of(message.substr(0, message.find(": "))) + message;
    } catch (const Error&) {
        return message;
    }
}

std::string read_file(const std::string& path) {
    std::error_code ignored;
    require(!std::filesystem::is_directory(path, ignored), ExitCode::usage,
            "{}: expected a configuration file, got a folder", path);
    errno = 0;
    std::ifstream stream(path, std::ios::binary);
    if (!stream.good()) {
        const std::string reason = std::strerror(errno);
        std::filesystem::path other = path;
        other.replace_extension(other.extension() == ".yaml" ? ".yml" : ".yaml");
        const bool exists = std::filesystem::is_regular_file(other, ignored);
        throw Error(ExitCode::usage,
                    fmt::format("{}: cannot be read: {}{}", in_quotes(path), reason,
                                exists ? "; did you mean " + in_quotes(other.string()) + "?" : ""));
    }
    // Reads one byte more than allowed, which detects a file that is too large or endless.
    std::string bytes(kMaxFileBytes + 1, '\0');
    stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    require(!stream.bad(), ExitCode::usage, "{}: cannot be read", in_quotes(path));
    bytes.resize(static_cast<std::size_t>(stream.gcount()));
    check_size(bytes.size(), path);
    return bytes;
}

}  // namespace hpcai::config
