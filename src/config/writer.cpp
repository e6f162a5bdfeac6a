// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <hpcai/config/keys.hpp>
#include <hpcai/config/writer.hpp>

#include "values.hpp"

namespace hpcai::config {
namespace {

using Json = nlohmann::ordered_json;

Json json_value(const Value& value) {
    if (std::holds_alternative<Automatic>(value)) return "auto";
    return std::visit(
        [](const auto& given) -> Json {
            if constexpr (std::is_same_v<std::decay_t<decltype(given)>, Automatic>) {
                return nullptr;
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

Json type_schema(const Key& key) {
    Json concrete = concrete_schema(key);
    if (!key.may_be_auto) return concrete;
    return {{"anyOf", Json::array({Json{{"const", "auto"}}, concrete})}};
}

Json key_schema(const Key& key) {
    Json schema = type_schema(key);
    schema["description"] =
        key.unit.empty() ? key.meaning : fmt::format("{} [{}]", key.meaning, key.unit);
    schema["default"] = json_value(key.get(Config{}));
    return schema;
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
    Json document;
    for (const Key& key : keys()) document[key.section][key.name] = json_value(key.get(config));
    return document.dump(2) + "\n";
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
