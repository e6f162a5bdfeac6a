// SPDX-License-Identifier: Apache-2.0
#include <hpcai/records/group_record.hpp>
#include <hpcai/records/json.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::refusing([&] {
        const GroupResult group = records::from_json<GroupResult>(fuzz::text_of(data, size));
        const std::string written = records::to_json(group);
        fuzz::expect(records::to_json(fuzz::accepting(
                         [&] { return records::from_json<GroupResult>(written); })) == written);
    });
    return 0;
}
