// SPDX-License-Identifier: Apache-2.0
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
    });
    return 0;
}
