// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

/// Gives the struct `Record` its keys and its equality. The arguments name its members in the order
/// of the file that stores it; each member's name is its key.
#define HPCAI_RECORD(Record, ...)                                 \
    static constexpr std::string_view record_keys = #__VA_ARGS__; \
    constexpr auto record_values() {                              \
        return std::tie(__VA_ARGS__);                             \
    }                                                             \
    constexpr auto record_values() const {                        \
        return std::tie(__VA_ARGS__);                             \
    }                                                             \
    bool operator==(const Record&) const = default

namespace hpcai {

/// Calls `visit(key, member)` for each member of a record that HPCAI_RECORD names, in that order.
template <typename Record, typename Visit>
requires requires(Record& record) {
    record.record_values();
}
void for_each_field(Record& record, Visit&& visit) {
    std::string_view keys = record.record_keys;
    const auto next_key = [&keys] {
        const std::string_view key = keys.substr(0, keys.find(','));
        keys.remove_prefix(std::min(key.size() + 2, keys.size()));
        return std::string(key);
    };
    std::apply([&](auto&... members) { (visit(next_key(), members), ...); },
               record.record_values());
}

}  // namespace hpcai
