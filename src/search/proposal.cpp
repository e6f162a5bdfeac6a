// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/search/proposal.hpp>
#include <hpcai/search/tpe.hpp>

#include "annealing.hpp"
#include "draw_morph.hpp"
#include "parents.hpp"

namespace hpcai::search {
namespace {

constexpr double kTolerance = 1e-9;  // relative difference of numbers drawn with other C libraries

CounterStream draws_of(const Basis& basis, RandomPurpose purpose, const Request& request) {
    return {basis.seed, purpose, static_cast<std::uint32_t>(request.group),
            static_cast<std::uint32_t>(request.sequence), static_cast<std::uint32_t>(request.draw)};
}

/// Parent and edit script of a child.
struct Ancestry {
    TrialId parent;
    std::vector<EditRecord> edits;
};

/// Returns a child whose graph has one more morph than its parent's or, without `has_edit`, equals
/// it.
Ancestry draw_child(const Basis& basis, std::span<const Completed> population, bool has_edit,
                    CounterStream& draws) {
    const auto index = basis.settings.parent == ParentRule::random
                           ? random_parent(population, draws)
                           : tournament_winner(population, basis.settings.tournament, draws);
    Ancestry child;
    if (index) {
        const Completed& parent = population[*index];
        child = {parent.id, {parent.edits.begin(), parent.edits.end()}};
    }
    if (!has_edit) return child;
    const auto graph = morphs::apply_all(basis.root, morphs_of(child.edits));
    if (const auto morph = draw_morph(graph, basis.settings.has_plain_deepening, draws)) {
        child.edits.push_back(edits_of({&*morph, 1}).front());
    }
    return child;
}

/// Returns a child by simulated annealing. The Gaussian process also uses trials that are too old
/// to be parents. They are marked as missing, as are trials whose weights are gone.
std::optional<Ancestry> annealed_child(const Basis& basis, std::span<const SeenTrial> seen,
                                       std::span<const TrialId> missing, CounterStream& draws) {
    const Settings& settings = basis.settings;
    std::vector<Completed> known =
        completed_trials(seen, missing, static_cast<std::size_t>(settings.history_cap));
    const std::ptrdiff_t old = std::ssize(known) - settings.population;
    for (std::ptrdiff_t i = 0; i < old; ++i) known[static_cast<std::size_t>(i)].is_missing = true;
    auto best = anneal(basis.root, known, draws, settings.has_plain_deepening);
    if (!best) return std::nullopt;
    return Ancestry{known[best->parent].id, std::move(best->edits)};
}

Ancestry draw_ancestry(const Basis& basis, const Request& request,
                       std::span<const SeenTrial> seen) {
    if (request.sequence == 0) return {};
    const bool has_edit = request.draw < basis.settings.max_draws;
    CounterStream draws = draws_of(basis, RandomPurpose::proposal, request);
    if (basis.settings.parent == ParentRule::bayesian && has_edit) {
        if (auto child = annealed_child(basis, seen, request.missing, draws)) return *child;
    }
    const auto newest = static_cast<std::size_t>(basis.settings.population);
    return draw_child(basis, completed_trials(seen, request.missing, newest), has_edit, draws);
}

/// Returns the value of a hyper-parameter of a trial. Throws Error(data) if the trial's
/// hyper-parameters are not those of the search.
double value_of(const ProposedTrial& trial, const Settings& settings, std::size_t dimension) {
    const bool has = trial.hyper_parameters.size() == settings.dimensions.size() &&
                     trial.hyper_parameters[dimension].name == settings.dimensions[dimension].name;
    require(has, ExitCode::data, "trial {} lacks the hyper-parameter {}", trial.sequence,
            settings.dimensions[dimension].name);
    return trial.hyper_parameters[dimension].value;
}

std::vector<Observation> observations_of(std::span<const SeenTrial> seen, const Settings& settings,
                                         std::size_t dimension) {
    std::vector<Observation> observations;
    for (const SeenTrial& trial : seen) {
        if (!trial.accuracy && !trial.is_running) continue;  // failed
        observations.push_back({value_of(trial.trial->proposed, settings, dimension),
                                trial.accuracy.value_or(0), !trial.is_running});
    }
    return observations;
}

std::vector<HyperParameter> draw_hyper_parameters(const Basis& basis, const Request& request,
                                                  std::span<const SeenTrial> seen,
                                                  const TrialId& parent) {
    const Settings& settings = basis.settings;
    CounterStream draws = draws_of(basis, RandomPurpose::hyper_parameters, request);
    const auto seen_parent = std::ranges::find(seen, parent, &SeenTrial::id);
    std::vector<HyperParameter> values;
    for (std::size_t i = 0; i < settings.dimensions.size(); ++i) {
        const Dimension& dimension = settings.dimensions[i];
        double value = dimension.start;
        if (request.sequence >= settings.first_drawn_sequence) {
            value = suggest(dimension, observations_of(seen, settings, i), draws);
        } else if (seen_parent != seen.end()) {
            value = value_of(seen_parent->trial->proposed, settings, i);
        }
        values.push_back({dimension.name, value});
    }
    return values;
}

bool is_in(const Dimension& dimension, const HyperParameter& value) {
    if (value.name != dimension.name) return false;
    if (dimension.choices.empty())
        return value.value >= dimension.low && value.value <= dimension.high;
    return std::ranges::find(dimension.choices, value.value) != dimension.choices.end();
}

/// Throws Error(data) if a proposal adds too many edits to those of its parent. The caller has
/// checked the parent.
void check_edits(const Settings& settings, const ProposedTrial& trial,
                 std::span<const History> histories, std::string_view at) {
    const TrialId parent = trial.parent;
    const std::size_t inherited = parent.is_root()
                                      ? 0
                                      : histories[static_cast<std::size_t>(parent.group)]
                                            .trials()[static_cast<std::size_t>(parent.sequence)]
                                            .proposed.edits.size();
    const std::size_t most =
        inherited + (settings.parent == ParentRule::bayesian ? kMaxAnnealedMorphs : 1);
    require(trial.edits.size() <= most, ExitCode::data, "{}: edits: expected at most {}, got {}",
            at, most, trial.edits.size());
}

struct Line {
    const History* history = nullptr;
    const ProposedTrial* trial = nullptr;

    std::string at() const {
        return fmt::format("{}, line {}", history->name(), 2 * std::int64_t{trial->sequence} + 1);
    }
};

/// The proposals, ordered by the number of lines seen. The first wrong proposal is then usually the
/// forged one, not one that depends on it.
std::vector<Line> lines_by_time(std::span<const History> histories) {
    std::vector<Line> lines;
    for (const History& history : histories) {
        for (const Trial& trial : history.trials()) lines.push_back({&history, &trial.proposed});
    }
    std::ranges::stable_sort(lines, {}, [](const Line& line) {
        const std::vector<std::int64_t>& seen = line.trial->seen;
        return std::accumulate(seen.begin(), seen.end(), std::int64_t{0});
    });
    return lines;
}

bool is_near(const HyperParameter& a, const HyperParameter& b) {
    return a.name == b.name && std::abs(a.value - b.value) <=
                                   kTolerance * std::max(std::abs(a.value), std::abs(b.value));
}

}  // namespace

Request request_of(int group, const ProposedTrial& trial) {
    return {group, trial.sequence, trial.draw, trial.missing, trial.seen, trial.memory_bytes};
}

void check_hyper_parameters(const Settings& settings, const ProposedTrial& trial,
                            std::string_view at) {
    const auto& values = trial.hyper_parameters;
    require(values.size() == settings.dimensions.size(), ExitCode::data,
            "{}: hyper_parameters: expected {}, got {}", at, settings.dimensions.size(),
            values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        require(is_in(settings.dimensions[i], values[i]), ExitCode::data,
                "{}: hyper_parameters[{}]: expected a legal value of {}, got {} = {}", at, i,
                settings.dimensions[i].name, printable(values[i].name), values[i].value);
    }
}

ProposedTrial propose(const Basis& basis, const Request& request,
                      std::span<const History> histories) {
    return propose(basis, request, pointers_to(histories));
}

ProposedTrial propose(const Basis& basis, const Request& request,
                      std::span<const History* const> histories) {
    const std::vector<SeenTrial> seen = seen_trials(histories, request.seen);
    Ancestry ancestry = draw_ancestry(basis, request, seen);
    ProposedTrial trial;
    trial.sequence = request.sequence;
    trial.parent = ancestry.parent;
    trial.edits = std::move(ancestry.edits);
    trial.hyper_parameters = draw_hyper_parameters(basis, request, seen, trial.parent);
    trial.draw = request.draw;
    trial.missing = request.missing;
    trial.seen = request.seen;
    trial.memory_bytes = request.memory_bytes;
    return trial;
}

bool has_same_proposal(const ProposedTrial& a, const ProposedTrial& b) {
    const auto rest = [](const ProposedTrial& trial) {
        return std::tie(trial.sequence, trial.parent, trial.edits, trial.draw, trial.missing,
                        trial.seen, trial.memory_bytes);
    };
    return rest(a) == rest(b) &&
           std::ranges::equal(a.hyper_parameters, b.hyper_parameters, is_near);
}

void check_proposals(const Basis& basis, std::span<const History> histories) {
    check_histories(histories);
    const std::vector<Line> lines = lines_by_time(histories);
    for (const Line& line : lines) {
        check_hyper_parameters(basis.settings, *line.trial, line.at());
        check_edits(basis.settings, *line.trial, histories, line.at());
    }
    const std::vector<const History*> pointers = pointers_to(histories);
    for (const Line& line : lines) {
        const ProposedTrial again =
            propose(basis, request_of(line.history->group(), *line.trial), pointers);
        require(has_same_proposal(*line.trial, again), ExitCode::mismatch,
                "{}: the search proposes another trial from the lines seen", line.at());
    }
}

}  // namespace hpcai::search
