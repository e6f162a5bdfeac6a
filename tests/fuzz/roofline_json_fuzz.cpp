// SPDX-License-Identifier: Apache-2.0
#include <hpcai/report/json.hpp>
#include <hpcai/report/roofline.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::refusing([&] {
        const RooflineRecord record =
            report::roofline_from_json(fuzz::text_of(data, size), "roofline.json");
        const std::string written = report::to_json(record);
        const auto again =
            fuzz::accepting([&] { return report::roofline_from_json(written, "again"); });
        fuzz::expect(report::to_json(again) == written);
        fuzz::expect(fuzz::is_plain(report::roofline_text(record)));
    });
    return 0;
}
