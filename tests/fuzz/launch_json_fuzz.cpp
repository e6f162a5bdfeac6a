// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <hpcai/records/json.hpp>
#include <hpcai/records/run_record.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::refusing([&] {
        const LaunchRecord launch =
            records::from_json<LaunchRecord>(fuzz::text_of(data, size), "launch.json");
        const std::string written = records::to_json(launch);
        fuzz::expect(records::to_json(fuzz::accepting([&] {
                         return records::from_json<LaunchRecord>(written, "launch.json");
                     })) == written);
        const TopologyRecord& topology = launch.topology;
        fuzz::expect(topology.groups >= 1 && topology.degree >= 1);
        fuzz::expect(std::int64_t{topology.groups} * topology.degree == topology.ranks);
        fuzz::expect(std::cmp_equal(topology.map.size(), topology.ranks));
    });
    return 0;
}
