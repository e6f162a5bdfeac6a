// SPDX-License-Identifier: Apache-2.0
#include <hpcai/records/json.hpp>
#include <hpcai/report/record_text.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::refusing([&] {
        const RooflineRecord record =
            records::from_json<RooflineRecord>(fuzz::text_of(data, size), "roofline.json");
        const std::string written = records::to_json(record);
        const auto again =
            fuzz::accepting([&] { return records::from_json<RooflineRecord>(written, "again"); });
        fuzz::expect(records::to_json(again) == written);
        fuzz::expect(fuzz::is_plain(report::roofline_text(record)));
    });
    return 0;
}
