// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/config/writer.hpp>

#include "values.hpp"

namespace hpcai::config {
namespace {

using Json = nlohmann::ordered_json;

Json json_value(const Value& value) {
    return std::visit(
        [](const auto& given) -> Json {
            if constexpr (std::is_same_v<std::decay_t<decltype(given)>, Automatic>) {
                return "auto";
            } else {
                return given;
            }
        },
        value);
}

Json range_schema(const Bounds& bounds, const char* type) {
    Json schema = {{"type", type}};
    const auto limit = [&](double value) {
        return std::string_view(type) == "integer" ? Json(static_cast<std::int64_t>(value))
                                                   : Json(value);
    };
    schema[bounds.minimum_is_legal ? "minimum" : "exclusiveMinimum"] = limit(bounds.minimum);
    schema[bounds.maximum_is_legal ? "maximum" : "exclusiveMaximum"] = limit(bounds.maximum);
    return schema;
}

Json concrete_schema(const Key& key) {
    switch (key.type) {
        case KeyType::text:
            if (!key.is_file_name) return {{"type", "string"}};
            return {{"type", "string"}, {"pattern", kFileNamePattern}};
        case KeyType::boolean:
            return {{"type", "boolean"}};
        case KeyType::integer:
            return range_schema(key.bounds, "integer");
        case KeyType::number:
            return range_schema(key.bounds, "number");
        case KeyType::choice:
            return {{"enum", key.choices}};
        case KeyType::integer_list:
            return {{"type", "array"}, {"items", range_schema(key.bounds, "integer")}};
        case KeyType::number_list:
            return {{"type", "array"}, {"items", range_schema(key.bounds, "number")}};
        case KeyType::text_list:
            return {{"type", "array"}, {"items", {{"type", "string"}}}};
    }
    return {};
}

Json key_schema(const Key& key) {
    const Json concrete = concrete_schema(key);
    Json schema = concrete;
    if (key.may_be_auto) schema = {{"anyOf", Json::array({Json{{"const", "auto"}}, concrete})}};
    schema["description"] =
        key.unit.empty() ? key.meaning : fmt::format("{} [{}]", key.meaning, key.unit);
    schema["default"] = json_value(key.get(Config{}));
    return schema;
}

std::string explain_key(const Key& key) {
    std::string facts = fmt::format("default: {}   legal: {}", yaml_value(key, key.get(Config{})),
                                    legal_values(key));
    if (!key.unit.empty()) facts += fmt::format("   unit: {}", key.unit);
    return fmt::format("{}\n{}\n{}\n", key.full_name(), wrap("    " + key.meaning, 4),
                       wrap("    " + facts, 4));
}

std::string explain_section(const Section& section) {
    std::string text = wrap(fmt::format("[{}] {}", section.name, section.meaning), 4) + "\n";
    for (const Key& key : keys()) {
        if (key.section == section.name) text += explain_key(key);
    }
    return text;
}

std::string without_article(const std::string& text) {
    return text.substr(text.starts_with("an ") ? 3 : text.starts_with("a ") ? 2 : 0);
}

std::string markdown_section(const Section& section) {
    std::string text = fmt::format(
        "\n## {}\n\n{}\n\n| key | default | legal values | meaning |\n|---|---|---|---|\n",
        section.name, section.meaning);
    for (const Key& key : keys()) {
        if (key.section != section.name) continue;
        text += fmt::format("| `{}` | `{}`{}{} | {} | {} |\n", key.full_name(),
                            yaml_value(key, key.get(Config{})), key.unit.empty() ? "" : " ",
                            key.unit, without_article(legal_values(key)), key.meaning);
    }
    return text;
}

}  // namespace

std::string to_yaml(const Config& config) {
    std::string text;
    for (const Section& section : sections()) {
        text += section.name + ":\n";
        for (const Key& key : keys()) {
            if (key.section != section.name) continue;
            text += fmt::format("  {}: {}\n", key.name, yaml_value(key, key.get(config)));
        }
    }
    return text;
}

std::string to_json(const Config& config) {
    nlohmann::json document;
    for (const Key& key : keys()) document[key.section][key.name] = json_value(key.get(config));
    return document.dump(2) + "\n";
}

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
    if (dot == std::string::npos) return explain_section(require_section(name, "config explain"));
    return explain_key(require_key(name.substr(0, dot), name.substr(dot + 1), "config explain"));
}

std::string markdown() {
    std::string text =
        "# Configuration\n\n"
        "The configuration is one YAML file with these sections; every key is optional. `configs/` "
        "has examples.\n`--set section.key=value` changes one key. Unknown keys, illegal values, "
        "duplicate keys, anchors, aliases,\nmerge keys, tags, tabs, second documents and numbers "
        "with leading zeros are rejected with exit code 2.\nPaths are relative to the working "
        "directory.\n\n"
        "Generated by `hpcai500 config explain --markdown > docs/CONFIG.md`.\n";
    for (const Section& section : sections()) text += markdown_section(section);
    return text;
}

std::string json_schema() {
    Json properties = Json::object();
    for (const Section& section : sections()) {
        Json members = Json::object();
        for (const Key& key : keys()) {
            if (key.section == section.name) members[key.name] = key_schema(key);
        }
        properties[section.name] = {{"type", {"object", "null"}},
                                    {"description", section.meaning},
                                    {"properties", members},
                                    {"additionalProperties", false}};
    }
    const Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                         {"title", "hpcai500 configuration"},
                         {"type", {"object", "null"}},
                         {"properties", properties},
                         {"additionalProperties", false}};
    return schema.dump(2) + "\n";
}

}  // namespace hpcai::config
