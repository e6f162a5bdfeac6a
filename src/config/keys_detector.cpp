// SPDX-License-Identifier: Apache-2.0
#include "key_builder.hpp"

namespace hpcai::config {
namespace {

using DetectorKeyBuilder = SectionBuilder<DetectorConfig>;

std::vector<Key> network_keys(const DetectorKeyBuilder& detector) {
    return {
        detector.choice<Normalization>(
            "normalization", &DetectorConfig::normalization,
            {{{Normalization::batch, "batch"},
              {Normalization::frozen_batch, "frozen_batch"},
              {Normalization::group, "group"}}},
            {.meaning = "Normalization in the backbone: over the batch, by fixed statistics of "
                        "training.initial_weights, or over 32 groups of channels of each image."}),
        detector.integer("trained_stages", &DetectorConfig::trained_stages,
                         {.meaning = "Stages of the backbone that are trained, from the last on; "
                                     "5 are all, its first convolution among them.",
                          .bounds = between(0, 5)}),
        detector.integer("pyramid_channels", &DetectorConfig::pyramid_channels,
                         {.meaning = "Channels of the feature pyramid and the proposal network.",
                          .unit = "channels",
                          .bounds = between(8, 2048)}),
        detector.integer("head_features", &DetectorConfig::head_features,
                         {.meaning = "Features of the two hidden layers that classify regions.",
                          .bounds = between(8, 16384)}),
        detector.numbers("anchor_sizes", &DetectorConfig::anchor_sizes,
                         {.meaning = "Side of the square whose area the reference boxes of a "
                                     "level have, for the levels of strides 4, 8, 16, 32 and 64.",
                          .unit = "pixels",
                          .bounds = between(1, 8192)}),
        detector.numbers(
            "anchor_ratios", &DetectorConfig::anchor_ratios,
            {.meaning = "Height / width of the reference boxes.", .bounds = between(0.05, 20)}),
    };
}

std::vector<Key> count_keys(const DetectorKeyBuilder& detector) {
    return {
        detector.integer("anchor_samples", &DetectorConfig::anchor_samples,
                         {.meaning = "Reference boxes of an image that the proposal network's "
                                     "losses are taken from.",
                          .bounds = between(2, 4096)}),
        detector.integer("region_samples", &DetectorConfig::region_samples,
                         {.meaning = "Regions of an image that the second stage's losses are "
                                     "taken from; a quarter at most are foreground.",
                          .bounds = between(4, 4096)}),
        detector.integer("training_proposals", &DetectorConfig::training_proposals,
                         {.meaning = "Proposals of a level before suppression, and of an image "
                                     "after it, in training.",
                          .bounds = between(1, 4096)}),
        detector.integer("inference_proposals", &DetectorConfig::inference_proposals,
                         {.meaning = "The same in evaluation.", .bounds = between(1, 4096)}),
        detector.number("score_threshold", &DetectorConfig::score_threshold,
                        {.meaning = "Score above which a detection is kept, at most 100 of an "
                                    "image.",
                         .unit = "fraction",
                         .bounds = from_below(0, 1)}),
        detector.number("fusion_overlap", &DetectorConfig::fusion_overlap,
                        {.meaning = "Intersection over union from which on boxes of base models "
                                    "are taken for one; 0 is the usual one, 0.55 of wbf and 0.5 "
                                    "of nms.",
                         .unit = "fraction",
                         .bounds = from_below(0, 1)}),
    };
}

}  // namespace

std::vector<Key> detector_keys() {
    const DetectorKeyBuilder detector("detector", &Config::detector);
    std::vector<Key> keys = network_keys(detector);
    for (Key& key : count_keys(detector)) keys.push_back(std::move(key));
    return keys;
}

}  // namespace hpcai::config
