// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numeric>
#include <string_view>
#include <type_traits>
#include <vector>

#include <hpcai/comm/communicator.hpp>

/// Typed wrappers of Communicator calls. All are collective and throw as Communicator does.
namespace hpcai::comm {

/// Returns `mine` of every rank, by rank.
template <typename T>
requires std::is_trivially_copyable_v<T> std::vector<T> all_gather(Communicator& ranks,
                                                                   const T& mine) {
    std::vector<T> all(static_cast<std::size_t>(ranks.size()));
    ranks.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    return all;
}

/// Returns at rank 0 the values of all ranks, in the order of the ranks; elsewhere an empty vector.
/// Ranks may have different numbers of values.
template <typename T>
requires std::is_trivially_copyable_v<T> std::vector<T> gather(Communicator& ranks,
                                                               std::vector<T> mine) {
    constexpr int kTag = 1;
    const std::vector<std::size_t> counts = all_gather(ranks, mine.size());
    if (ranks.rank() != 0) {
        ranks.send(std::as_bytes(std::span(mine)), 0, kTag);
        return {};
    }
    std::size_t begin = mine.size();
    mine.resize(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
    for (int rank = 1; rank < ranks.size(); ++rank) {
        const std::span<T> part = std::span(mine).subspan(begin, counts[rank]);
        ranks.receive(std::as_writable_bytes(part), rank, kTag);
        begin += part.size();
    }
    return mine;
}

/// Returns `mine` of `root`, a vector or string. `mine` may have another size on the other ranks.
template <typename Values>
Values broadcast(Communicator& ranks, Values mine, int root = 0) {
    std::uint64_t count = mine.size();
    ranks.broadcast(std::as_writable_bytes(std::span(&count, 1)), root);
    mine.resize(count);
    ranks.broadcast(std::as_writable_bytes(std::span(mine)), root);
    return mine;
}

/// A failure of some ranks that all ranks throw after the same call: they can still communicate.
class AgreedError : public Error {
public:
    using Error::Error;
};

/// Runs `work` on every rank and waits for all ranks. If `work` throws on some ranks, every rank
/// throws the Error of the lowest of these ranks as an AgreedError, so that no rank waits in a
/// later collective. Other exceptions become Error(internal). If `work` makes collective calls, no
/// rank may throw before the last of these calls.
void collective_try(Communicator& ranks, const std::function<void()>& work);

/// Returns the string of every rank, by rank. Strings must not contain zero bytes. If all are
/// equal, each rank sends this string log2(size()) times at most.
std::vector<std::string> all_gather_strings(Communicator& ranks, std::string_view mine);

/// Returns at rank 0 the strings of all ranks, by rank; elsewhere an empty vector.
std::vector<std::string> gather_strings(Communicator& ranks, std::string_view mine);

}  // namespace hpcai::comm
