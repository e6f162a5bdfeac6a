// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/config/config.hpp>

namespace hpcai::config {

/// The sources of a configuration. Without files it has the defaults.
struct Sources {
    std::vector<std::string> files;      // YAML; a later file replaces values of earlier ones
    std::vector<std::string> overrides;  // "section.key=value"; they replace values of files
};

/// Reads and checks a configuration. Throws Error(usage) as read_file() and parse() do, but
/// workload.classes may be `auto`, for which data::load_config() counts the classes.
Config load(const Sources& sources);

/// Returns `message`. Before a key at its beginning ("data.path: ..."), inserts the place where
/// this key is set ("quickstart.yaml:4:9: "), unless a file is invalid or not a regular file.
std::string locate(const Sources& sources, const std::string& message);

/// Returns work(). An Error that it throws gets the message of locate().
template <typename Work>
auto locate_errors(const Sources& sources, const Work& work) {
    try {
        return work();
    } catch (const Error& error) {
        throw Error(error.code(), locate(sources, error.what()));
    }
}

/// Returns work(), which reads the file that the key or option `key` names. The message of an Error
/// that it throws begins with `key`.
template <typename Work>
auto name_key(const std::string& key, const Work& work) {
    try {
        return work();
    } catch (const Error& error) {
        throw Error(error.code(), key + ": " + error.what());
    }
}

/// Parses one YAML document and then applies `overrides` ("training.batch_size=64").
/// `file_name` is for messages ("quickstart.yaml:3:5: ..."). Throws Error(usage) for the first
/// error, such as unknown, duplicate or ill-typed keys, aliases, merge keys, second documents,
/// illegal values, contradictory settings, or workload.classes `auto`.
Config parse(const std::string& yaml, const std::string& file_name,
             const std::vector<std::string>& overrides);

/// Returns the file's bytes. Throws Error(usage) naming an unreadable file or one above 1 MiB.
std::string read_file(const std::string& path);

}  // namespace hpcai::config
