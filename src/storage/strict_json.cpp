// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/storage/strict_json.hpp>

namespace hpcai::storage {
namespace {

using nlohmann::json;

/// Watches the parser, which itself keeps the last of two equal keys and has no limits.
class Guard {
public:
    Guard(std::string_view name, const JsonLimits& limits) : name_(name), limits_(limits) {}

    void on_event(int depth, json::parse_event_t event, const json& parsed) {
        require(depth <= limits_.depth, ExitCode::data, "'{}' is nested deeper than {} levels",
                name_, limits_.depth);
        require(++events_ <= 2 * limits_.values, ExitCode::data, "'{}' has more than {} values",
                name_, limits_.values);
        const auto level = static_cast<std::size_t>(depth);
        if (event == json::parse_event_t::object_start) {
            keys_.resize(level + 2);
            keys_[level + 1].clear();
        } else if (event == json::parse_event_t::key) {
            const auto& key = parsed.get_ref<const std::string&>();
            require(keys_[level].insert(key).second, ExitCode::data, "'{}' has the key '{}' twice",
                    name_, key);
        }
    }

private:
    std::string_view name_;
    JsonLimits limits_;
    std::size_t events_ = 0;
    std::vector<std::set<std::string>> keys_;  // by depth
};

}  // namespace

json parse_strict_json(std::string_view text, std::string_view name, const JsonLimits& limits) {
    Guard guard(name, limits);
    try {
        return json::parse(text, [&](int depth, json::parse_event_t event, const json& parsed) {
            guard.on_event(depth, event, parsed);
            return true;
        });
    } catch (const json::exception& error) {
        throw Error(ExitCode::data, fmt::format("'{}' is not valid JSON: {}", name, error.what()));
    }
}

JsonPlace JsonPlace::key(const std::string& key) const {
    return {file_, path_.empty() ? key : path_ + "." + key};
}

JsonPlace JsonPlace::index(std::size_t index) const {
    return {file_, fmt::format("{}[{}]", path_, index)};
}

void JsonPlace::fail(std::string_view expected, const json& got) const {
    std::string text = got.dump();
    if (text.size() > 60) text = text.substr(0, 60) + "...";
    throw Error(ExitCode::data, fmt::format("'{}': {}: expected {}, got {}", file_,
                                            path_.empty() ? "the whole" : path_, expected, text));
}

}  // namespace hpcai::storage
