// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/config/reader.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // Each line is the value of a --set.
    std::vector<std::string> overrides;
    std::string_view rest = fuzz::text_of(data, size);
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        overrides.emplace_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    fuzz::refusing([&] { config::parse("", "none.yaml", overrides); });
    return 0;
}
