// SPDX-License-Identifier: Apache-2.0
#include "training_costs.hpp"

#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace hpcai::group {
namespace {

constexpr const char* kName = "costs";

/// Calls `visit` with each number of the two, in the order of the file.
template <typename Costs, typename Visit>
void for_each_number(Costs& costs, const Visit& visit) {
    visit(costs.input_wait_seconds);
    auto& sums = costs.sums;
    visit(sums.steps);
    visit(sums.bytes_reduced);
    visit(sums.exposed_seconds);
    visit(sums.interleaved_seconds);
    visit(sums.overlapped_seconds);
    visit(sums.timed_steps);
    auto& statistics = costs.statistics;
    visit(statistics.sums);
    visit(statistics.bytes);
    visit(statistics.sent.all);
    visit(statistics.sent.to_other_nodes);
    visit(statistics.seconds);
    auto& messages = costs.messages;
    visit(messages.steps);
    visit(messages.bytes_sent);
    visit(messages.wait_seconds);
    visit(messages.parts.bytes_sent);
    visit(messages.parts.wait_seconds);
}

comm::SumSeconds sum_of(const std::optional<comm::SumSeconds>& one,
                        const std::optional<comm::SumSeconds>& other) {
    const comm::SumSeconds first = one.value_or(comm::SumSeconds{});
    const comm::SumSeconds second = other.value_or(comm::SumSeconds{});
    return {first.exposed + second.exposed, first.under_way + second.under_way};
}

}  // namespace

void TrainingCosts::add(const TrainingCosts& earlier) {
    std::vector<double> numbers;
    for_each_number(earlier, [&](auto number) { numbers.push_back(static_cast<double>(number)); });
    std::size_t at = 0;
    for_each_number(*this, [&](auto& number) {
        number += static_cast<std::remove_reference_t<decltype(number)>>(numbers[at++]);
    });
    if (sums.timed || earlier.sums.timed) sums.timed = sum_of(sums.timed, earlier.sums.timed);
    if (gradients && earlier.gradients) *gradients += *earlier.gradients;
}

void TrainingCosts::save(training::Snapshot& to) const {
    std::vector<double> numbers;
    for_each_number(*this, [&](auto number) { numbers.push_back(static_cast<double>(number)); });
    to.put_numbers(kName, std::move(numbers));
    std::vector<double> timed, sent;
    if (sums.timed) timed = {sums.timed->exposed, sums.timed->under_way};
    if (gradients) {
        sent = {static_cast<double>(gradients->all),
                static_cast<double>(gradients->to_other_nodes)};
    }
    to.put_numbers("costs.timed", std::move(timed));
    to.put_numbers("costs.gradients", std::move(sent));
}

TrainingCosts TrainingCosts::restored(const training::Snapshot& from) {
    TrainingCosts costs;
    std::size_t count = 0;
    for_each_number(costs, [&](auto) { ++count; });
    const std::span<const double> numbers = from.numbers(kName, count);
    std::size_t at = 0;
    for_each_number(costs, [&](auto& number) {
        using Number = std::remove_reference_t<decltype(number)>;
        const double stored = numbers[at++];
        if constexpr (std::is_same_v<Number, std::int64_t>) {
            number = from.whole(kName, stored, 0, std::int64_t{1} << 53);
        } else {
            number = stored;
        }
    });
    const std::span<const double> timed = from.table("costs.timed", 2);
    if (!timed.empty()) costs.sums.timed = comm::SumSeconds{timed[0], timed[1]};
    const std::span<const double> sent = from.table("costs.gradients", 2);
    if (!sent.empty()) {
        const auto bytes = [&](double value) {
            return from.whole("costs.gradients", value, 0, std::int64_t{1} << 53);
        };
        costs.gradients = comm::SentBytes{bytes(sent[0]), bytes(sent[1])};
    }
    return costs;
}

}  // namespace hpcai::group
