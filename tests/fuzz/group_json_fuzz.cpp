// SPDX-License-Identifier: Apache-2.0
#include <hpcai/report/json.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::refusing([&] {
        const GroupResult group = report::group_from_json(fuzz::text_of(data, size));
        const std::string written = report::to_json(group);
        fuzz::expect(report::to_json(fuzz::accepting(
                         [&] { return report::group_from_json(written); })) == written);
    });
    return 0;
}
