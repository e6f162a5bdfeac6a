// SPDX-License-Identifier: Apache-2.0
#include "staging.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <hpcai/config/keys.hpp>

namespace hpcai::prediction {
namespace {

int most_groups_on_a_node(const plan::LayoutSummary& layout) {
    std::map<int, int> groups;
    int most = 0;
    for (const std::vector<plan::NodeShare>& shares : layout.groups) {
        for (const plan::NodeShare& share : shares) most = std::max(most, ++groups[share.node]);
    }
    return most;
}

/// Expected share of the samples in at least one of so many bootstraps. A sample stays out of one
/// with probability 1/e (of draws with replacement, in the limit of many samples).
double share_drawn(const config::BaggingConfig& bagging, int groups) {
    switch (bagging.sampler) {
        case config::Sampler::poisson:
        case config::Sampler::bootstrap:
            return -std::expm1(-groups);
        case config::Sampler::subsample:
            return 1 - std::pow(1 - bagging.subsample_fraction, groups);
        case config::Sampler::none:
            return 1;
    }
    return 1;
}

}  // namespace

StagingEstimate estimate_staging(const config::Config& config, const EstimateRequest& request,
                                 const plan::LayoutSummary& layout, const Quantity& samples) {
    StagingEstimate staging{config::value_text(config, "data.staging"), {}, {}};
    if (config.data.staging == config::Staging::none) {
        const Quantity nothing{std::nullopt, "data.staging is none"};
        return {staging.scope, nothing, nothing};
    }
    const bool takes_all =
        config.data.kind == config::DataKind::climate_hdf5 ||
        (config.data.staging == config::Staging::all && config.bagging.out_of_bag);
    const double share = takes_all ? 1 : share_drawn(config.bagging, most_groups_on_a_node(layout));
    staging.fullest_node_samples = samples;
    if (samples.value) staging.fullest_node_samples.value = std::round(share * *samples.value);
    staging.fullest_node_bytes = staging.fullest_node_samples;
    if (!request.bytes_per_sample) {
        staging.fullest_node_bytes = {std::nullopt,
                                      "the size of the samples is not known: "
                                      "data.path is not a folder of pictures here"};
    } else if (samples.value) {
        staging.fullest_node_bytes.value =
            std::round(*staging.fullest_node_samples.value * *request.bytes_per_sample);
    }
    return staging;
}

}  // namespace hpcai::prediction
