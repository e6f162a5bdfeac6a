// SPDX-License-Identifier: Apache-2.0
#include <hpcai/report/repetitions.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::refusing([&] {
        const RepetitionsRecord record =
            report::repetitions_from_json(fuzz::text_of(data, size), "repetitions.json");
        const std::string written = report::to_json(record);
        const auto again =
            fuzz::accepting([&] { return report::repetitions_from_json(written, "again"); });
        fuzz::expect(report::to_json(again) == written);
        fuzz::expect(fuzz::is_plain(report::repetitions_table(record, "digest")));
    });
    return 0;
}
