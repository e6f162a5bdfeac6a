// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/base/rounding.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/prediction/estimate.hpp>

#include "estimate_parts.hpp"

namespace hpcai::prediction {
namespace {

/// Returns the probability that a sample is not in a group's bootstrap: 1/e with replacement.
double out_of_bag_probability(const config::BaggingConfig& bagging) {
    if (bagging.sampler == config::Sampler::none) return 0;
    if (bagging.sampler == config::Sampler::subsample) return 1 - bagging.subsample_fraction;
    return std::exp(-1.0);
}

/// Returns whether a group rank in [first, end) has the first shard of the first stage. Such ranks
/// read samples.
bool has_reader(const plan::Layout& layout, int first, int end) {
    const int next = align_up(first, layout.shards);  // shards of a replica are consecutive ranks
    return next < std::min(end, layout.data_degree() * layout.shards);
}

/// Returns the expected share of the training samples on the node that needs the most. A node needs
/// the bootstrap sample of each group that has a reading rank there, and the out-of-bag samples
/// that its ranks evaluate.
double max_staged_share(const config::Config& config, const plan::LayoutSummary& layout) {
    const bool with_evaluation =
        config.data.staging == config::Staging::all && config.bagging.out_of_bag;
    const double out_of_bag = out_of_bag_probability(config.bagging);
    std::map<int, double> unused_share;  // [node] P(no group needs a sample there)
    double min_unused = 1;
    for (const std::vector<plan::NodeShare>& shares : layout.groups) {
        int ranks_before = 0;
        for (const plan::NodeShare& share : shares) {
            const bool reads_bootstrap =
                has_reader(layout.layout, ranks_before, ranks_before + share.ranks);
            const double evaluated =
                with_evaluation ? static_cast<double>(share.ranks) / layout.layout.degree : 0;
            double& unused = unused_share.try_emplace(share.node, 1).first->second;
            unused *= (reads_bootstrap ? 0 : 1 - out_of_bag) + out_of_bag * (1 - evaluated);
            min_unused = std::min(min_unused, unused);
            ranks_before += share.ranks;
        }
    }
    return 1 - min_unused;
}

}  // namespace

PlanStagingRecord estimate_staging(const config::Config& config, const EstimateRequest& request,
                                   const plan::LayoutSummary& layout, const Quantity& samples) {
    PlanStagingRecord staging{config::value_text(config, "data.staging"), samples, {}};
    if (config.data.staging == config::Staging::none) {
        const Quantity nothing = no_value("data.staging is none");
        return {staging.scope, nothing, nothing};
    }
    const bool copies_all = config.data.kind == config::DataKind::climate_hdf5;
    const double share = copies_all ? 1 : max_staged_share(config, layout);
    if (samples.value) staging.fullest_node_samples.value = std::round(share * *samples.value);
    staging.fullest_node_bytes = staging.fullest_node_samples;  // a reason, if unknown
    if (!request.bytes_per_sample) {
        staging.fullest_node_bytes = no_value(
            "the size of a sample is unknown: data.path is no folder of images on this machine");
    } else if (samples.value) {
        staging.fullest_node_bytes.value =
            std::round(*staging.fullest_node_samples.value * *request.bytes_per_sample);
    }
    return staging;
}

}  // namespace hpcai::prediction
