// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/storage/strict_json.hpp>

namespace hpcai::storage {
namespace {

using nlohmann::json;

/// Checks limits and duplicate keys before json::parse, which checks neither. This class is not a
/// callback of json::parse, because callbacks need quadratic time for arrays.
class LimitChecker {
public:
    LimitChecker(std::string_view name, const JsonLimits& limits) : name_(name), limits_(limits) {}

    bool null() { return count(); }
    bool boolean(bool) { return count(); }
    bool number_integer(json::number_integer_t) { return count(); }
    bool number_unsigned(json::number_unsigned_t) { return count(); }
    bool number_float(json::number_float_t, const std::string&) { return count(); }
    bool string(const std::string&) { return count(); }
    bool binary(const json::binary_t&) { return count(); }
    bool start_array(std::size_t) { return open(); }
    bool start_object(std::size_t) { return open(); }
    bool end_array() { return close(); }
    bool end_object() { return close(); }

    bool key(const std::string& key) {
        require(keys_.back().insert(key).second, ExitCode::data, "'{}' has the key '{}' twice",
                name_, key);
        return count();
    }

    /// Ends the check without a message, because json::parse reports the same error.
    bool parse_error(std::size_t, const std::string&, const json::exception&) { return false; }

private:
    bool count() {
        require(keys_.size() <= limits_.depth, ExitCode::data,
                "'{}' is nested deeper than {} levels", name_, limits_.depth);
        require(++events_ <= 2 * limits_.values, ExitCode::data, "'{}' has more than {} values",
                name_, limits_.values);
        return true;
    }

    bool open() {
        count();
        keys_.emplace_back();
        return true;
    }

    bool close() {
        keys_.pop_back();
        return count();
    }

    std::string_view name_;
    JsonLimits limits_;
    std::size_t events_ = 0;
    std::vector<std::set<std::string>> keys_;  // one per open object or array; an array has no keys
};

/// Removes the middle of a long message, because the parser quotes the text, however long.
std::string abbreviated(std::string_view message) {
    constexpr std::size_t kBeginning = 200, kEnd = 40;
    if (message.size() <= kBeginning + kEnd) return std::string(message);
    return fmt::format("{} ... {}", message.substr(0, kBeginning),
                       message.substr(message.size() - kEnd));
}

}  // namespace

json parse_strict_json(std::string_view text, std::string_view name, const JsonLimits& limits) {
    LimitChecker checker(name, limits);
    json::sax_parse(text, &checker);
    try {
        return json::parse(text);
    } catch (const json::exception& error) {
        throw Error(ExitCode::data, fmt::format("'{}' is not valid JSON: {}", name,
                                                printable(abbreviated(error.what()))));
    }
}

JsonLocation JsonLocation::key(const std::string& key) const {
    return {file_, path_.empty() ? key : path_ + "." + key};
}

JsonLocation JsonLocation::index(std::size_t index) const {
    return {file_, fmt::format("{}[{}]", path_, index)};
}

void JsonLocation::fail(std::string_view expected, const json& got) const {
    std::string text = got.dump();
    if (text.size() > 60) text = text.substr(0, 60) + "...";
    throw Error(ExitCode::data, fmt::format("'{}': {}: expected {}, got {}", file_,
                                            path_.empty() ? "top level" : path_, expected, text));
}

}  // namespace hpcai::storage
