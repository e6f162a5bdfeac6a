// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/records/trial_record.hpp>

/// Settings of a search that determine its proposals.
namespace hpcai::search {

/// How the parent of a trial is chosen.
enum class ParentRule {
    evolution,  // aging evolution: the best of a random sample of the newest trials
    bayesian,   // simulated annealing on the predictions of a Gaussian process, as in AIPerf
    random,     // uniform among the newest trials and the root
};

/// A hyper-parameter that the search draws: a number in [low, high] or, if `choices` is not empty,
/// one of these.
struct Dimension {
    std::string name;
    double low = 0;
    double high = 1;
    bool is_logarithmic = false;  // draws and models the logarithm; needs low > 0
    std::vector<double> choices;
    double start = 0;  // value of trials that inherit from the root and draw no value
};

struct Settings {
    ParentRule parent = ParentRule::evolution;
    int population = 100;   // newest completed trials that may be parents, in each ParentRule
    int tournament = 10;    // trials of which evolution draws the best as parent
    int history_cap = 256;  // newest completed trials that the Gaussian process knows
    int max_draws =
        kMaxRefusedDraws;  // refused proposals of a trial; the next one has its parent's network
    bool has_plain_deepening = false;  // whether there are morphs of the kind deeper_plain
    std::vector<Dimension> dimensions;
    // Trials from this sequence on draw hyper-parameters by TPE; earlier ones keep their parent's.
    int first_drawn_sequence = 3;
};

}  // namespace hpcai::search
