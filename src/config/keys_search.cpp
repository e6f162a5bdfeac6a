// SPDX-License-Identifier: Apache-2.0
#include "section_keys.hpp"

namespace hpcai::config {

std::vector<Key> search_keys() {
    using C = SearchConfig;
    using enum ParentChoice;
    using enum SearchHistory;
    constexpr double kMonthSeconds = 31 * 86400;
    constexpr SectionKeys<&Config::search> key{"search"};
    return {
        key("trials", &C::trials, between(0, 1000000, "trials"),
            "Trials of each group; 0 searches until duration_seconds."),
        key("duration_seconds", &C::duration_seconds, between(0, kMonthSeconds, "seconds"),
            "Time after the start-up after which each group ends its search with the epoch in "
            "progress; 0 is no limit."),
        key("epochs", &C::epochs, between(1, 65535, "epochs"),
            "Epochs of a group's trials in order; later trials have the last number."),
        key("parent", &C::parent,
            {{evolution, "evolution"}, {bayesian, "bayesian"}, {random, "random"}},
            "Choice of a trial's parent among the newest 100: the best of ten random ones "
            "(evolution); the one with the edit of largest mean + 2.576 standard deviations in a "
            "Gaussian process over edit distances (bayesian); any of them or the root (random)."),
        key("history", &C::history,
            {{asynchronous, "asynchronous"}, {own, "own"}, {recorded, "recorded"}},
            "Trials that a proposal depends on: those of all groups so far (asynchronous), of its "
            "own group (own), or as in search.recorded (recorded)."),
        key("recorded", &C::recorded, "Result directory that history recorded replays."),
        key("hold_out", &C::hold_out, between(0.01, 0.5, "fraction"),
            "Share of the training samples, selected by a hash of their names, on which trials are "
            "evaluated and not trained."),
        key("max_flops_factor", &C::max_flops_factor, between(1, 1000),
            "Maximum FLOPs of a trial's network, as a multiple of the root's."),
        key("max_memory_gb", &C::max_memory_gb, between(0, 1000000, "GB"),
            "Maximum memory of a rank for a trial's network; 0: the memory of the rank's device."),
        key("plain_deepening", &C::plain_deepening, "Whether the edit deeper_plain is allowed."),
        key("root_blocks", &C::root_blocks, between(1, 64, "blocks"),
            "Residual blocks in each stage of the root, the first network; 3, 4, 6, 3: ResNet-50."),
        key("rate_factors", &C::rate_factors, between(0.001, 1000),
            "Range of the factor of training.learning_rate that a trial draws."),
        key("weight_decays", &C::weight_decays, between(0.0000001, 1),
            "Range of the training.weight_decay that a trial draws."),
    };
}

}  // namespace hpcai::config
