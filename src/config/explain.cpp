// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <hpcai/config/keys.hpp>
#include <hpcai/config/writer.hpp>

#include "names.hpp"

namespace hpcai::config {
namespace {

std::string default_text(const Key& key) {
    return yaml_value(key, key.get(Config{}));
}

std::string explain_key(const Key& key) {
    std::string facts =
        fmt::format("default: {}   legal: {}", default_text(key), legal_values(key));
    if (!key.unit.empty()) facts += fmt::format("   unit: {}", key.unit);
    return fmt::format("{}\n    {}\n    {}\n", key.full_name(), key.meaning, facts);
}

std::string explain_section(const Section& section) {
    std::string text = fmt::format("[{}] {}\n", section.name, section.meaning);
    for (const Key& key : keys()) {
        if (key.section == section.name) text += explain_key(key);
    }
    return text;
}

std::string markdown_section(const Section& section) {
    std::string text = fmt::format(
        "\n## {}\n\n{}\n\n| key | default | unit | legal | meaning |\n|---|---|---|---|---|\n",
        section.name, section.meaning);
    for (const Key& key : keys()) {
        if (key.section != section.name) continue;
        text += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", key.full_name(), default_text(key),
                            key.unit, legal_values(key), key.meaning);
    }
    return text;
}

}  // namespace

std::string explain(const std::string& name) {
    if (name.empty()) {
        std::string text;
        for (const Section& section : sections()) {
            if (!text.empty()) text += '\n';
            text += explain_section(section);
        }
        return text;
    }
    const auto dot = name.find('.');
    if (dot == std::string::npos) return explain_section(section_named(name, "config explain"));
    return explain_key(key_named(name.substr(0, dot), name.substr(dot + 1), "config explain"));
}

std::string markdown() {
    std::string text =
        "# Configuration\n\n"
        "One YAML file of the sections below; every key may be left out. `configs/` holds files "
        "that are\nready to run, `--set section.key=value` changes one key. Whatever is not in "
        "these tables is refused\nwith exit code 2, as are duplicate keys, anchors, aliases, merge "
        "keys, tags, tabs, second documents\nand numbers with leading zeros. Paths are relative to "
        "the working directory.\n\n"
        "This file is made by `hpcai500 config explain --markdown > docs/CONFIG.md`.\n";
    for (const Section& section : sections()) text += markdown_section(section);
    return text;
}

}  // namespace hpcai::config
