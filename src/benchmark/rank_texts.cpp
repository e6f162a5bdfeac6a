// SPDX-License-Identifier: Apache-2.0
#include "rank_texts.hpp"

#include <array>
#include <span>

namespace hpcai::benchmark {

std::vector<std::string> gather_texts(comm::Communicator& everyone, std::string_view mine) {
    constexpr std::size_t kBytes = 256;
    std::array<char, kBytes> packed{};
    mine.copy(packed.data(), packed.size() - 1);
    std::vector<std::array<char, kBytes>> all(static_cast<std::size_t>(everyone.size()));
    everyone.all_gather(std::as_bytes(std::span(packed)), std::as_writable_bytes(std::span(all)));
    std::vector<std::string> texts;
    for (const auto& text : all) texts.emplace_back(text.data());
    return texts;
}

}  // namespace hpcai::benchmark
