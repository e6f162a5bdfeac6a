// SPDX-License-Identifier: Apache-2.0
#include "section_keys.hpp"

namespace hpcai::config {

std::vector<Key> detector_keys() {
    using C = DetectorConfig;
    using enum Normalization;
    constexpr SectionKeys<&Config::detector> key;
    return {
        key("normalization", &C::normalization,
            {{batch, "batch"}, {frozen_batch, "frozen_batch"}, {group, "group"}},
            "Normalization in the backbone: over the batch, by fixed statistics of "
            "training.initial_weights, or over 32 groups of channels of each image."),
        key("trained_stages", &C::trained_stages, between(0, 5),
            "Stages of the backbone that are trained, from the last on; 5 are all, its first "
            "convolution among them."),
        key("pyramid_channels", &C::pyramid_channels, between(8, 2048, "channels"),
            "Channels of the feature pyramid and the proposal network."),
        key("head_features", &C::head_features, between(8, 16384),
            "Features of the two hidden layers that classify regions."),
        key("anchor_sizes", &C::anchor_sizes, between(1, 8192, "pixels"),
            "Side of the square whose area the reference boxes of a level have, for the levels of "
            "strides 4, 8, 16, 32 and 64."),
        key("anchor_ratios", &C::anchor_ratios, between(0.05, 20),
            "Height / width of the reference boxes."),
        key("anchor_samples", &C::anchor_samples, between(2, 4096),
            "Reference boxes of an image that the proposal network's losses are taken from."),
        key("region_samples", &C::region_samples, between(4, 4096),
            "Regions of an image that the second stage's losses are taken from; a quarter at most "
            "are foreground."),
        key("training_proposals", &C::training_proposals, between(1, 4096),
            "Proposals of a level before suppression, and of an image after it, in training."),
        key("inference_proposals", &C::inference_proposals, between(1, 4096),
            "The same in evaluation."),
        key("score_threshold", &C::score_threshold, from_below(0, 1, "fraction"),
            "Score above which a detection is kept, at most 100 of an image."),
        key("fusion_overlap", &C::fusion_overlap, from_below(0, 1, "fraction"),
            "Intersection over union from which on boxes of base models are taken for one; 0 is "
            "the usual one, 0.55 of wbf and 0.5 of nms."),
    };
}

}  // namespace hpcai::config
