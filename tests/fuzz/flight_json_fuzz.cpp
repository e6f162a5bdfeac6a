// SPDX-License-Identifier: Apache-2.0
#include <hpcai/records/json.hpp>
#include <hpcai/report/record_text.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::refusing([&] {
        const FlightRecord record =
            records::from_json<FlightRecord>(fuzz::text_of(data, size), "rank-0.json");
        const std::string written = records::to_json(record);
        const auto again =
            fuzz::accepting([&] { return records::from_json<FlightRecord>(written, "again"); });
        fuzz::expect(records::to_json(again) == written);
        fuzz::expect(fuzz::is_plain(report::describe_laggards({&record, 1})));
    });
    return 0;
}
