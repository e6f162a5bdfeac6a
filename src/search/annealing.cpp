// SPDX-License-Identifier: Apache-2.0
#include "annealing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <queue>
#include <utility>

#include <hpcai/search/edits.hpp>

#include "draw_morph.hpp"
#include "edit_distance.hpp"
#include "gaussian_process.hpp"

namespace hpcai::search {
namespace {

constexpr double kLowestTemperature = 1e-4;
constexpr int kChildren = 8;
constexpr double kDeviations = 2.576;    // around the mean; 99 % of normal values are within
constexpr double kEqualDistance = 1e-5;  // graphs at a smaller distance count as equal

/// A graph in the queue.
struct Candidate {
    double value = 0;
    std::size_t parent = 0;  // index in the population
    graph::Graph graph;
    std::vector<EditRecord> edits;
    std::size_t number = 0;  // order of insertion; of equal values, the lowest number is first out
};

bool operator<(const Candidate& a, const Candidate& b) {
    return std::pair(a.value, b.number) < std::pair(b.value, a.number);
}

/// Returns the accuracies, shifted and scaled to mean 0 and deviation 1.
std::vector<double> standardized(std::span<const Completed> population) {
    const auto count = static_cast<double>(population.size());
    double mean = 0, variance = 0;
    for (const Completed& trial : population) mean += trial.accuracy / count;
    for (const Completed& trial : population)
        variance += (trial.accuracy - mean) * (trial.accuracy - mean) / count;
    const double scale = variance > 0 ? 1 / std::sqrt(variance) : 1;
    std::vector<double> values;
    for (const Completed& trial : population) values.push_back((trial.accuracy - mean) * scale);
    return values;
}

class Annealer {
public:
    Annealer(const graph::Graph& root, std::span<const Completed> population, CounterStream& draws,
             bool has_plain)
        : draws_(draws), has_plain_(has_plain), values_(standardized(population)) {
        for (std::size_t i = 0; i < population.size(); ++i) {
            const auto edits = population[i].edits;
            graph::Graph graph = morphs::apply_all(root, morphs_of(edits));
            known_.push_back(describe(graph));
            if (!population[i].is_missing)
                push({values_[i], i, std::move(graph), {edits.begin(), edits.end()}});
        }
        process_.emplace(distances(), values_);
    }

    std::optional<BestChild> run() {
        for (double temperature = 1; temperature > kLowestTemperature && !queue_.empty();
             temperature /= 2) {
            const Candidate next = queue_.top();
            queue_.pop();
            const double exponent = std::min((next.value - largest_) / temperature, 1.0);
            if (std::exp(exponent) < draws_.uniform()) continue;
            for (int child = 0; child < kChildren; ++child) add_child_of(next);
        }
        return best_;
    }

private:
    std::vector<double> distances() const {
        const std::size_t count = known_.size();
        std::vector<double> matrix(count * count);
        for (std::size_t i = 0; i < count; ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                matrix[i * count + j] = edit_distance(known_[i], known_[j]);
                matrix[j * count + i] = matrix[i * count + j];
            }
        }
        return matrix;
    }

    void push(Candidate candidate) {
        candidate.number = pushed_++;
        queue_.push(std::move(candidate));
    }

    void add_child_of(const Candidate& parent) {
        const std::optional<morphs::Morph> morph = draw_morph(parent.graph, has_plain_, draws_);
        if (!morph) return;
        const auto position = static_cast<std::uint32_t>(parent.edits.size());
        Candidate child{0, parent.parent, morphs::apply(parent.graph, *morph, position, 0).graph,
                        parent.edits, 0};
        child.edits.push_back(edits_of({&*morph, 1}).front());
        Descriptor descriptor = describe(child.graph);
        std::vector<double> distances;
        for (const Descriptor& known : known_) {
            distances.push_back(edit_distance(descriptor, known));
            if (distances.back() < kEqualDistance) return;
        }
        distances.resize(values_.size());
        known_.push_back(std::move(descriptor));
        const GaussianProcess::Prediction prediction = process_->predict(distances);
        child.value = prediction.mean + kDeviations * prediction.deviation;
        if (child.value > largest_) {
            largest_ = child.value;
            best_ = {child.parent, child.edits};
        }
        push(std::move(child));
    }

    CounterStream& draws_;
    bool has_plain_;
    std::vector<double> values_;     // of the population
    std::vector<Descriptor> known_;  // of the population, then of the children
    std::optional<GaussianProcess> process_;
    std::priority_queue<Candidate> queue_;
    std::size_t pushed_ = 0;
    double largest_ = -std::numeric_limits<double>::infinity();
    std::optional<BestChild> best_;
};

}  // namespace

std::optional<BestChild> anneal(const graph::Graph& root, std::span<const Completed> population,
                                CounterStream& draws, bool has_plain) {
    if (population.empty()) return std::nullopt;
    return Annealer(root, population, draws, has_plain).run();
}

}  // namespace hpcai::search
