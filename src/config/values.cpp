// SPDX-License-Identifier: Apache-2.0
#include "values.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <ranges>
#include <regex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/config/nearest.hpp>

namespace hpcai::config {
namespace {

constexpr std::size_t kMaxTextBytes = 4096;
constexpr std::size_t kMaxListLength = 1024;

/// Numbers with a leading zero are rejected: YAML 1.1 reads 010 as octal, YAML 1.2 as ten.
bool looks_octal(std::string_view text) {
    if (text.starts_with('-')) text.remove_prefix(1);
    return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

std::optional<std::int64_t> integer_of(const Node& node) {
    if (node.kind != NodeKind::scalar || node.quoted || looks_octal(node.text)) return std::nullopt;
    return parse_number<std::int64_t>(node.text);
}

std::optional<double> number_of(const Node& node) {
    if (node.kind != NodeKind::scalar || node.quoted || looks_octal(node.text)) return std::nullopt;
    // parse_number accepts "inf" and "nan", which begin with a letter.
    const auto first = node.text.find_first_not_of('-');
    if (first == std::string::npos || std::isalpha(static_cast<unsigned char>(node.text[first]))) {
        return std::nullopt;
    }
    return parse_number<double>(node.text);
}

const char* hint_of(const Node& node) {
    if (node.quoted) return " (a quoted value is a string)";
    const bool is_octal = node.kind == NodeKind::scalar && looks_octal(node.text);
    return is_octal ? " (a number has no leading zeros)" : "";
}

std::string describe(const Node& node) {
    if (node.kind == NodeKind::scalar) return in_quotes(node.text);
    if (node.kind == NodeKind::null) return "nothing";
    return node.kind == NodeKind::list ? "a list" : "a mapping";
}

class ValueReader {
public:
    ValueReader(const Key& key, const Origin& origin) : key_(key), origin_(origin) {}

    Value read(const Node& node) const {
        const bool is_scalar = node.kind == NodeKind::scalar;
        if (key_.may_be_auto && is_scalar && node.text == "auto") return Automatic{};
        switch (key_.type) {
            case KeyType::text:
                return text(node);
            case KeyType::boolean:
                check(is_scalar && !node.quoted && (node.text == "true" || node.text == "false"),
                      node, hint_of(node));
                return node.text == "true";
            case KeyType::integer:
                return bounded(integer_of(node), node);
            case KeyType::number:
                return bounded(number_of(node), node);
            case KeyType::choice:
                return choice(node);
            case KeyType::integer_list:
                return list(node, [this](const Node& item) {
                    return static_cast<int>(bounded(integer_of(item), item));
                });
            case KeyType::number_list:
                return list(node,
                            [this](const Node& item) { return bounded(number_of(item), item); });
            case KeyType::text_list:
                return list(node, [this](const Node& item) { return text(item); });
        }
        ensure(false, "key {} has no type", key_.full_name());
        return {};
    }

private:
    void check(bool legal, const Node& node, const std::string& hint = "") const {
        require(legal, ExitCode::usage, "{}: {}: expected {}, got {}{}", origin_.at(node.position),
                key_.full_name(), legal_values(key_), describe(node), hint);
    }

    template <typename T>
    T bounded(std::optional<T> value, const Node& node) const {
        check(value.has_value(), node, hint_of(node));
        check(key_.bounds.contain(static_cast<double>(*value)), node);
        return *value;
    }

    std::string text(const Node& node) const {
        check(node.kind == NodeKind::scalar, node);
        // Escapes in double quotes can yield any character.
        check_characters(node.text, {origin_.at(node.position) + ": " + key_.full_name(), false});
        check(node.text.find('\n') == std::string::npos, node, " (with a line end)");
        check(node.text.size() <= kMaxTextBytes, node,
              fmt::format(" (longer than {} bytes)", kMaxTextBytes));
        check(!key_.is_file_name || std::regex_match(node.text, std::regex(kFileNamePattern)),
              node);
        return node.text;
    }

    std::string choice(const Node& node) const {
        check(node.kind == NodeKind::scalar, node);
        const bool is_legal = std::ranges::count(key_.choices, node.text) > 0;
        check(is_legal, node, is_legal ? "" : did_you_mean(node.text, key_.choices));
        return node.text;
    }

    template <typename Read>
    Value list(const Node& node, const Read& read_item) const {
        check(node.kind == NodeKind::list, node);
        check(node.items.size() <= kMaxListLength, node,
              fmt::format(" of more than {} values", kMaxListLength));
        std::vector<decltype(read_item(node))> values;
        for (const Node& item : node.items) values.push_back(read_item(item));
        return values;
    }

    const Key& key_;
    const Origin& origin_;
};

/// Returns the range of a number for a message. All keys have finite bounds.
std::string bounds_text(const Bounds& bounds) {
    const std::string minimum = number_text(bounds.minimum), maximum = number_text(bounds.maximum);
    if (bounds.minimum_is_legal && bounds.maximum_is_legal) {
        return fmt::format(" from {} to {}", minimum, maximum);
    }
    return fmt::format(" {} {} and {} {}", bounds.minimum_is_legal ? "at least" : "above", minimum,
                       bounds.maximum_is_legal ? "at most" : "below", maximum);
}

std::string escaped(const std::string& text) {
    std::string result = "\"";
    for (const char letter : text) {
        const auto code = static_cast<unsigned char>(letter);
        if (letter == '"' || letter == '\\') result += '\\';
        if (code < 0x20 || code == 0x7F) {
            result += fmt::format("\\x{:02x}", code);
        } else {
            result += letter;
        }
    }
    return result + '"';
}

}  // namespace

Value read_value(const Key& key, const Node& node, const Origin& origin) {
    return ValueReader(key, origin).read(node);
}

std::string number_text(double value) {
    std::string text = fmt::format("{}", value);
    const auto exponent = text.find('e');
    if (exponent != std::string::npos && text.find('.') == std::string::npos) {
        text.insert(exponent, ".0");
    }
    return text;
}

std::string legal_values(const Key& key) {
    const std::string bounds = bounds_text(key.bounds);
    const std::string or_auto = key.may_be_auto ? "auto or " : "";
    switch (key.type) {
        case KeyType::text:
            return key.is_file_name ? "1 to 64 letters, digits, '.', '_' or '-', beginning with a "
                                      "letter or a digit"
                                    : "a string";
        case KeyType::boolean:
            return key.may_be_auto ? "auto, true or false" : "true or false";
        case KeyType::integer:
            return or_auto + "an integer" + bounds;
        case KeyType::number:
            return or_auto + "a number" + bounds;
        case KeyType::choice:
            return key.choices.size() == 1 ? key.choices.front()
                                           : fmt::format("one of {}", fmt::join(key.choices, ", "));
        case KeyType::integer_list:
            return fmt::format("a list [a, b, ...] of integers{}", bounds);
        case KeyType::number_list:
            return fmt::format("a list [a, b, ...] of numbers{}", bounds);
        case KeyType::text_list:
            return "a list [a, b, ...] of strings";
    }
    return "";
}

std::string yaml_value(const Key& key, const Value& value) {
    struct Writer {
        const Key& key;
        std::string operator()(Automatic) const { return "auto"; }
        std::string operator()(bool given) const { return given ? "true" : "false"; }
        std::string operator()(std::int64_t given) const { return std::to_string(given); }
        std::string operator()(double given) const { return number_text(given); }
        std::string operator()(const std::string& given) const {
            return key.type == KeyType::text ? escaped(given) : given;
        }
        std::string operator()(const std::vector<int>& given) const {
            return fmt::format("[{}]", fmt::join(given, ", "));
        }
        std::string operator()(const std::vector<double>& given) const {
            std::vector<std::string> texts(given.size());
            std::ranges::transform(given, texts.begin(), number_text);
            return fmt::format("[{}]", fmt::join(texts, ", "));
        }
        std::string operator()(std::vector<std::string> given) const {
            std::ranges::transform(given, given.begin(), escaped);
            return fmt::format("[{}]", fmt::join(given, ", "));
        }
    };
    return std::visit(Writer{key}, value);
}

}  // namespace hpcai::config
