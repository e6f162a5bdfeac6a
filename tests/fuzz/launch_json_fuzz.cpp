// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <hpcai/report/launch.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::refusing([&] {
        const LaunchRecord launch =
            report::launch_from_json(fuzz::text_of(data, size), "launch.json");
        const std::string written = report::to_json(launch);
        fuzz::expect(report::to_json(fuzz::accepting([&] {
                         return report::launch_from_json(written, "launch.json");
                     })) == written);
        const TopologyRecord& topology = launch.topology;
        fuzz::expect(topology.groups >= 1 && topology.degree >= 1);
        fuzz::expect(std::int64_t{topology.groups} * topology.degree == topology.ranks);
        fuzz::expect(std::cmp_equal(topology.map.size(), topology.ranks));
    });
    return 0;
}
