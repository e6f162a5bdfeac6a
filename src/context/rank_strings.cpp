// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <span>

#include <hpcai/comm/agreement.hpp>
#include <hpcai/context/rank_strings.hpp>
#include <hpcai/storage/file.hpp>

namespace hpcai::context {

std::vector<std::string> all_gather_strings(comm::Communicator& everyone, std::string_view mine) {
    constexpr std::size_t kBytes = 256;
    std::array<char, kBytes> packed{};
    mine.copy(packed.data(), packed.size() - 1);
    std::vector<std::array<char, kBytes>> all(static_cast<std::size_t>(everyone.size()));
    everyone.all_gather(std::as_bytes(std::span(packed)), std::as_writable_bytes(std::span(all)));
    std::vector<std::string> texts;
    for (const auto& text : all) texts.emplace_back(text.data());
    return texts;
}

std::vector<std::string> gather_strings(comm::Communicator& ranks, const std::string& mine) {
    constexpr int kTag = 2;
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(ranks.size()));
    const auto size = static_cast<std::int64_t>(mine.size());
    ranks.all_gather(std::as_bytes(std::span(&size, 1)), std::as_writable_bytes(std::span(sizes)));
    if (ranks.rank() != 0) {
        ranks.send(storage::bytes_of(mine), 0, kTag);
        return {};
    }
    std::vector<std::string> all{mine};
    for (int rank = 1; rank < ranks.size(); ++rank) {
        std::string text(static_cast<std::size_t>(sizes[rank]), '\0');
        ranks.receive(std::as_writable_bytes(std::span(text)), rank, kTag);
        all.push_back(std::move(text));
    }
    return all;
}

std::string broadcast_string(comm::Communicator& everyone, const std::string& mine) {
    std::vector<std::byte> bytes(mine.size());
    std::memcpy(bytes.data(), mine.data(), mine.size());
    comm::broadcast_bytes(everyone, bytes, 0);
    return std::string(storage::text_of(bytes));
}

}  // namespace hpcai::context
