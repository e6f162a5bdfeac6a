// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hpcai::config {

/// A position in a file. Both numbers start at 1; columns count bytes.
struct Position {
    int line = 1;
    int column = 1;
};

enum class NodeKind { null, scalar, list, mapping };

struct Entry;

/// One value of a strict YAML document. At most kMaxDepth mappings and lists are nested.
struct Node {
    NodeKind kind = NodeKind::null;
    Position position = {};
    std::string text = {};         // scalar
    bool quoted = false;           // scalar: in quotes, hence a string
    std::vector<Node> items = {};  // list
    std::vector<Entry> entries;    // mapping: no name occurs twice
};

struct Entry {
    std::string name;
    Position position;  // of the name
    Node value;
};

inline constexpr int kMaxDepth = 3;  // document, section, list

/// The source of a configuration, for messages.
struct Origin {
    std::string name;  // of a file, or another source ("--set a.b=v")
    bool is_file = true;

    /// Returns "name:line:column" in a file, else the name.
    std::string at(Position position) const;
};

/// Parses exactly one YAML document; an empty document is a null node. If `yaml` is the value of
/// one key, `path` is that key, for messages; otherwise `path` is empty. Throws Error(usage), with
/// the position, for invalid UTF-8, control characters, tabs, anchors, aliases, merge keys, tags,
/// directives, duplicate keys, keys that are not scalars, more than 256 keys in a mapping, values
/// over several lines, a second document, deep nesting and invalid YAML.
Node parse_document(const std::string& yaml, const Origin& origin, const std::string& path);

/// Throws Error(usage) with a position for invalid UTF-8 or control characters except line ends.
void check_characters(std::string_view text, const Origin& origin);

/// Returns the first 64 bytes of `text`, with control characters and invalid UTF-8 as \xNN.
std::string message_text(std::string_view text);

/// Returns message_text(text) in single quotes.
std::string in_quotes(std::string_view text);

}  // namespace hpcai::config
