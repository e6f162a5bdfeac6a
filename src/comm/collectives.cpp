// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>

#include <hpcai/comm/collectives.hpp>

namespace hpcai::comm {

namespace {

std::optional<Error> run_and_catch(const std::function<void()>& work) {
    try {
        work();
    } catch (const std::exception& error) {
        return to_error(error);
    }
    return std::nullopt;
}

}  // namespace

void collective_try(Communicator& ranks, const std::function<void()>& work) {
    const std::optional<Error> mine = run_and_catch(work);
    std::array<double, 1> priority{mine ? ranks.size() - ranks.rank() : 0.0};  // 0: no failure
    ranks.all_reduce_max(priority);
    if (priority[0] == 0.0) return;

    const int lowest = ranks.size() - static_cast<int>(priority[0]);
    ExitCode code = mine ? mine->code() : ExitCode::ok;
    ranks.broadcast(std::as_writable_bytes(std::span(&code, 1)), lowest);
    throw Error(code, broadcast(ranks, std::string(mine ? mine->what() : ""), lowest));
}

std::vector<std::string> all_gather_strings(Communicator& ranks, std::string_view mine) {
    const auto size = static_cast<std::size_t>(ranks.size());
    const std::string first = broadcast(ranks, std::string(mine));
    std::array<double, 2> largest{mine == first ? 0.0 : 1.0, static_cast<double>(mine.size())};
    ranks.all_reduce_max(largest);
    if (largest[0] == 0.0) return std::vector(size, first);

    std::string padded(mine);
    padded.resize(static_cast<std::size_t>(largest[1]) + 1);
    std::string all(padded.size() * size, '\0');
    ranks.all_gather(std::as_bytes(std::span(padded)), std::as_writable_bytes(std::span(all)));
    std::vector<std::string> strings;
    for (const char* next = all.c_str(); strings.size() < size; next += padded.size()) {
        strings.emplace_back(next);
    }
    return strings;
}

std::vector<std::string> gather_strings(Communicator& ranks, std::string_view mine) {
    constexpr int kTag = 2;
    const std::vector<std::size_t> sizes = all_gather(ranks, mine.size());
    if (ranks.rank() != 0) {
        ranks.send(std::as_bytes(std::span(mine)), 0, kTag);
        return {};
    }
    std::vector<std::string> strings{std::string(mine)};
    for (int rank = 1; rank < ranks.size(); ++rank) {
        std::string& text = strings.emplace_back(sizes[rank], '\0');
        ranks.receive(std::as_writable_bytes(std::span(text)), rank, kTag);
    }
    return strings;
}

}  // namespace hpcai::comm
