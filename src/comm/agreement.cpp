// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>
#include <span>
#include <string>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/comm/collectives.hpp>

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
    ExitCode code = mine ? mine->code() : ExitCode::ok;
    ranks.broadcast(std::as_writable_bytes(std::span(&code, 1)), lowest);
    throw Error(code, broadcast(ranks, std::string(mine ? mine->what() : ""), lowest));
}

}  // namespace hpcai::comm
