// SPDX-License-Identifier: Apache-2.0
#include <hpcai/report/csv.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::refusing([&] {
        const std::string written =
            report::steps_to_csv(report::steps_from_csv(fuzz::text_of(data, size)));
        fuzz::expect(report::steps_to_csv(fuzz::accepting(
                         [&] { return report::steps_from_csv(written); })) == written);
    });
    return 0;
}
