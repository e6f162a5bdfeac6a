// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>
#include <utility>

#include <hpcai/comm/collectives.hpp>

namespace hpcai::comm {

void collective_try(Communicator& ranks, const std::function<void()>& work) {
    std::optional<Error> mine;
    try {
        work();
    } catch (const std::exception& error) {
        mine = to_error(error);
    }
    std::array<double, 1> priority{mine ? ranks.size() - ranks.rank() : 0.0};  // 0: no failure
    ranks.all_reduce_max(priority);
    if (priority[0] == 0.0) return;

    const int lowest = ranks.size() - static_cast<int>(priority[0]);
    ExitCode code = mine ? mine->code() : ExitCode::ok;
    ranks.broadcast(std::as_writable_bytes(std::span(&code, 1)), lowest);
    throw AgreedError(code, broadcast(ranks, std::string(mine ? mine->what() : ""), lowest));
}

std::vector<std::string> all_gather_strings(Communicator& ranks, std::string_view mine) {
    const auto size = static_cast<std::size_t>(ranks.size());
    const std::string first = broadcast(ranks, std::string(mine));
    // Whether a string differs from the first, and the maximum size.
    std::array<double, 2> maxima{mine == first ? 0.0 : 1.0, static_cast<double>(mine.size())};
    ranks.all_reduce_max(maxima);
    if (maxima[0] == 0.0) return std::vector(size, first);

    std::string padded(mine);
    padded.resize(static_cast<std::size_t>(maxima[1]) + 1);
    std::string all(padded.size() * size, '\0');
    ranks.all_gather(std::as_bytes(std::span(padded)), std::as_writable_bytes(std::span(all)));
    std::vector<std::string> strings;
    for (const char* next = all.c_str(); strings.size() < size; next += padded.size()) {
        strings.emplace_back(next);
    }
    return strings;
}

std::vector<std::string> gather_strings(Communicator& ranks, std::string_view mine) {
    const auto sizes = gather(ranks, std::vector{mine.size()});
    const auto all = gather(ranks, std::vector(mine.begin(), mine.end()));
    std::vector<std::string> strings;
    const char* next = all.data();
    for (const std::size_t size : sizes)
        strings.emplace_back(std::exchange(next, next + size), size);
    return strings;
}

}  // namespace hpcai::comm
