// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bags.hpp"
#include "support/largest_error.hpp"
#include "support/reference_json.hpp"

/// Compares bags and orders with scripts/reference/sampling_cases.py, a second implementation of
/// the contract in data_sampler.hpp. Draws only use integers, so all must be equal.
namespace hpcai::plan {
namespace {

using nlohmann::json;

DataSampler sampler_of(const json& wanted) {
    static const std::map<std::string, config::Sampler> kKinds{
        {"poisson", config::Sampler::poisson},
        {"bootstrap", config::Sampler::bootstrap},
        {"subsample", config::Sampler::subsample},
        {"none", config::Sampler::none}};
    return make_sampler(kKinds.at(wanted["sampler"]), wanted["samples"], wanted["seed"],
                        wanted.value("fraction", 1.0));
}

std::string name_of(const json& wanted, std::uint32_t model) {
    return fmt::format("{} of {} samples, seed {}, model {}", wanted["sampler"].get<std::string>(),
                       wanted["samples"].get<int>(), wanted["seed"].get<std::uint64_t>(), model);
}

template <typename Value>
double differences(const std::vector<Value>& got, const std::vector<Value>& want) {
    double count = got.size() == want.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) count += got[i] != want[i];
    return count;
}

TEST(DataSampler, DrawsTheBagsOfASecondImplementationInPython) {
    tests::LargestError error("counts of a bag that differ from a second implementation", 0);
    const json reference = tests::read_reference_json("sampling.json");
    for (const json& wanted : reference["bags"]) {
        const std::vector<std::uint32_t> models = wanted["models"];
        for (std::size_t i = 0; i < models.size(); ++i) {
            const std::string digits = wanted["counts"][i];
            std::vector<std::uint16_t> counts;
            for (const char digit : digits) {
                counts.push_back(static_cast<std::uint16_t>(digit - '0'));
            }
            error.add(differences(sampler_of(wanted).counts(models[i]), counts),
                      name_of(wanted, models[i]));
        }
    }
}

TEST(DataSampler, OrdersEpochsAsASecondImplementationInPython) {
    tests::LargestError error("places of an epoch that differ from a second implementation", 0);
    const json reference = tests::read_reference_json("sampling.json");
    for (const json& wanted : reference["bags"]) {
        const std::vector<std::uint32_t> models = wanted["models"];
        for (std::size_t i = 0; i < models.size(); ++i) {
            const std::vector<std::uint32_t> order = wanted["orders"][i];
            error.add(
                differences(sampler_of(wanted).epoch_order(models[i], wanted["epoch"]), order),
                name_of(wanted, models[i]));
        }
    }
}

TEST(Poisson, HasTheRareCountsOfASecondImplementationInDecimals) {
    const json rare = tests::read_reference_json("sampling.json")["rare"];
    const auto counts =
        make_sampler(config::Sampler::poisson, rare["samples"], rare["seed"]).counts(rare["model"]);
    std::vector<std::vector<std::uint32_t>> found;
    for (std::uint32_t sample = 0; sample < counts.size(); ++sample) {
        if (counts[sample] >= rare["at_least"].get<int>()) {
            found.push_back({sample, counts[sample]});
        }
    }
    const std::vector<std::vector<std::uint32_t>> expected = rare["counts"];
    EXPECT_GT(expected.size(), 50U);
    tests::LargestError error("counts from 7 on that differ from Poisson(1) in 60 digits", 0);
    error.add(differences(found, expected));
}

}  // namespace
}  // namespace hpcai::plan
