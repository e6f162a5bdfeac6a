// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>

#include <nlohmann/json.hpp>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/records/record_fields.hpp>

/// Serializes structs with HPCAI_RECORD as arrays of their members.
template <typename Record>
requires requires(Record& record) {
    record.record_values();
}
struct nlohmann::adl_serializer<Record> {
    static void to_json(json& out, const Record& record) {
        std::apply([&](const auto&... members) { out = json::array({members...}); },
                   record.record_values());
    }
    static void from_json(const json& in, Record& record) {
        auto member = in.begin();
        std::apply([&](auto&... members) { ((member++)->get_to(members), ...); },
                   record.record_values());
    }
};

namespace hpcai::data {

/// Calls `read` on rank 0 and broadcasts the result, which nlohmann::json must be able to convert.
/// Collective; every rank throws the error of rank 0.
template <typename Read>
auto read_at_one_rank(comm::Communicator& ranks, const Read& read) {
    decltype(read()) value;
    std::vector<std::uint8_t> packed;
    comm::collective_try(ranks, [&] {
        if (ranks.rank() != 0) return;
        value = read();
        // CBOR, unlike JSON, supports names that are not UTF-8.
        if (ranks.size() > 1) packed = nlohmann::json::to_cbor(value);
    });
    if (ranks.size() == 1) return value;
    packed = comm::broadcast(ranks, std::move(packed));
    if (ranks.rank() != 0) nlohmann::json::from_cbor(packed).get_to(value);
    return value;
}

}  // namespace hpcai::data
