// SPDX-License-Identifier: Apache-2.0
#include <hpcai/report/progress.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::refusing([&] {
        const ProgressRecord progress =
            report::progress_from_json(fuzz::text_of(data, size), "progress.json");
        const std::string written = report::to_json(progress);
        fuzz::expect(report::to_json(fuzz::accepting(
                         [&] { return report::progress_from_json(written, "again"); })) == written);
        fuzz::expect(
            fuzz::is_plain(report::progress_table({"run", {{0, progress, ""}}, 1'000'000})));
    });
    return 0;
}
