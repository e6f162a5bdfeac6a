// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/agreement.hpp>

namespace hpcai::comm {

namespace {

std::optional<Error> failure_of(const std::function<void()>& part) {
    try {
        part();
    } catch (const Error& error) {
        return error;
    } catch (const std::exception& error) {
        return Error(ExitCode::internal, error.what());
    }
    return std::nullopt;
}

}  // namespace

void collective_try(Communicator& ranks, const std::function<void()>& part) {
    const std::optional<Error> mine = failure_of(part);
    std::array<double, 1> ranks_from_failure{mine ? ranks.size() - ranks.rank() : 0.0};
    ranks.all_reduce_max(ranks_from_failure);
    if (ranks_from_failure[0] == 0.0) return;

    const int lowest = ranks.size() - static_cast<int>(ranks_from_failure[0]);
    std::array<int, 1> code{mine ? static_cast<int>(mine->code()) : 0};
    std::vector<std::byte> message;
    if (mine) {
        const std::span<const char> text(mine->what(), std::string_view(mine->what()).size());
        std::ranges::copy(std::as_bytes(text), std::back_inserter(message));
    }
    ranks.broadcast(std::as_writable_bytes(std::span(code)), lowest);
    broadcast_bytes(ranks, message, lowest);
    std::string text(message.size(), '\0');
    std::ranges::copy(message, std::as_writable_bytes(std::span(text)).begin());
    throw Error(static_cast<ExitCode>(code[0]), text);
}

void broadcast_bytes(Communicator& ranks, std::vector<std::byte>& bytes, int root) {
    std::array<std::uint64_t, 1> count{bytes.size()};
    ranks.broadcast(std::as_writable_bytes(std::span(count)), root);
    bytes.resize(count[0]);
    ranks.broadcast(bytes, root);
}

}  // namespace hpcai::comm
