// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>

#include <hpcai/evaluation/member_draws.hpp>

namespace hpcai::evaluation {
namespace {

constexpr std::uint32_t kMemberReplicates = 1000;
constexpr std::uint32_t kOfMembers = 1, kOfSamples = 2;  // streams of one replicate

}  // namespace

CounterStream MemberDraws::samples_of(std::size_t replicate) const {
    return {seed, RandomPurpose::confidence, static_cast<std::uint32_t>(replicate), kOfSamples};
}

MemberDraws draw_members(int members, std::uint64_t seed) {
    MemberDraws draws;
    draws.seed = seed;
    std::map<std::vector<float>, std::size_t> known;
    for (std::uint32_t replicate = 0; replicate < kMemberReplicates; ++replicate) {
        CounterStream stream(seed, RandomPurpose::confidence, replicate, kOfMembers);
        std::vector<float> weights(static_cast<std::size_t>(members));
        for (int draw = 0; draw < members; ++draw) {
            weights[stream.below(static_cast<std::uint32_t>(members))] += 1;
        }
        const auto [place, is_new] = known.try_emplace(weights, draws.weights.size());
        if (is_new) draws.weights.push_back(std::move(weights));
        draws.of_replicate.push_back(place->second);
    }
    return draws;
}

}  // namespace hpcai::evaluation
