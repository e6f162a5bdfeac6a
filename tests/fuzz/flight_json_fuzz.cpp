// SPDX-License-Identifier: Apache-2.0
#include <hpcai/report/flight.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::refusing([&] {
        const FlightRecord record =
            report::flight_from_json(fuzz::text_of(data, size), "rank-0.json");
        const std::string written = report::to_json(record);
        const auto again =
            fuzz::accepting([&] { return report::flight_from_json(written, "again"); });
        fuzz::expect(report::to_json(again) == written);
        fuzz::expect(fuzz::is_plain(report::describe_laggards({&record, 1})));
    });
    return 0;
}
