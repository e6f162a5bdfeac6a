// SPDX-License-Identifier: Apache-2.0
#include <hpcai/records/json.hpp>
#include <hpcai/report/summary.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // A record that was read is written as text that reads as the same record.
    fuzz::refusing([&] {
        const RunRecord record = records::from_json<RunRecord>(fuzz::text_of(data, size));
        const std::string written = records::to_json(record);
        fuzz::expect(records::to_json(fuzz::accepting(
                         [&] { return records::from_json<RunRecord>(written); })) == written);
        report::summary(record, "manifest");
    });
    return 0;
}
