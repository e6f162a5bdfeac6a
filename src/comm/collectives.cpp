// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <hpcai/comm/collectives.hpp>

namespace hpcai::comm {

std::vector<std::string> all_gather_strings(Communicator& ranks, std::string_view mine) {
    std::array<char, 256> packed{};
    mine.copy(packed.data(), packed.size() - 1);
    std::vector<std::string> strings;
    for (const auto& one : all_gather(ranks, packed)) strings.emplace_back(one.data());
    return strings;
}

std::vector<std::string> gather_strings(Communicator& ranks, std::string_view mine) {
    const std::vector<std::size_t> sizes = all_gather(ranks, mine.size());
    const std::vector<char> texts = gather(ranks, std::vector<char>(mine.begin(), mine.end()));
    std::vector<std::string> strings;
    if (ranks.rank() != 0) return strings;
    std::string_view rest(texts.data(), texts.size());
    for (const std::size_t size : sizes) {
        strings.emplace_back(rest.substr(0, size));
        rest.remove_prefix(size);
    }
    return strings;
}

}  // namespace hpcai::comm
