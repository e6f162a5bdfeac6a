// SPDX-License-Identifier: Apache-2.0
#include <hpcai/records/json.hpp>
#include <hpcai/report/progress.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::refusing([&] {
        const ProgressRecord progress =
            records::from_json<ProgressRecord>(fuzz::text_of(data, size), "progress.json");
        const std::string written = records::to_json(progress);
        fuzz::expect(records::to_json(fuzz::accepting([&] {
                         return records::from_json<ProgressRecord>(written, "again");
                     })) == written);
        fuzz::expect(
            fuzz::is_plain(report::progress_table({"run", {{0, progress, ""}}, 1'000'000})));
    });
    return 0;
}
