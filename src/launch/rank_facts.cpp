// SPDX-License-Identifier: Apache-2.0
#include "rank_facts.hpp"

#include <string>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/collectives.hpp>

namespace hpcai::launch {
namespace {

struct PackedFacts {
    std::int32_t threads = 0;
    std::int8_t over_repeats = 0;
    std::int8_t over_threads = 0;
    char device[124] = {};
    char conditions[126] = {};
    char device_uuid[64] = {};
};

}  // namespace

std::vector<context::RankFacts> gather_rank_facts(const device::Device& device,
                                                  comm::Communicator& everyone) {
    PackedFacts mine;
    mine.threads = device.threads();
    const std::string text = device.description();
    text.copy(mine.device, sizeof mine.device - 1);
    device.uuid().copy(mine.device_uuid, sizeof mine.device_uuid - 1);
    const device::Determinism determinism = device.determinism();
    mine.over_repeats = determinism.over_repeats;
    mine.over_threads = determinism.over_threads;
    // A truncated condition would promise more than the device does.
    ensure(determinism.conditions.size() < sizeof mine.conditions, "conditions of {} letters",
           determinism.conditions.size());
    determinism.conditions.copy(mine.conditions, sizeof mine.conditions - 1);
    std::vector<context::RankFacts> facts;
    for (const PackedFacts& packed : comm::all_gather(everyone, mine)) {
        facts.push_back({packed.threads,
                         packed.device,
                         packed.device_uuid,
                         {packed.over_repeats != 0, packed.over_threads != 0, packed.conditions}});
    }
    return facts;
}

}  // namespace hpcai::launch
