// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <limits>
#include <map>

#include <hpcai/base/units.hpp>
#include <hpcai/report/record_text.hpp>

#include "chart.hpp"
#include "markup.hpp"

namespace hpcai::report {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();  // interrupts a line
constexpr std::array kKinds{"",     "wider",  "kernel",
                            "skip", "deeper", "deeper_plain"};  // of a trial's last edit

std::string seconds_text(double seconds) {
    return fmt::format("{:.0f} s", seconds);
}

LinePlot over_time(const char* title, const std::string& description) {
    LinePlot plot;
    plot.title = title;
    plot.description = description;
    plot.x_name = "seconds since the end of the start-up";
    plot.x_format = seconds_text;
    return plot;
}

Series curve_of(const SearchRecord& search, const char* name, double SearchPoint::*value) {
    Series series{name, {}};
    for (const SearchPoint& point : search.curve)
        series.points.push_back({point.seconds, point.*value});
    return series;
}

Markup speed_plot(const SearchRecord& search) {
    LinePlot plot =
        over_time("OPS over time", "FLOPs of training and evaluation so far per second");
    plot.y_format = [](double flops) { return human_flops({flops, ""}); };
    plot.series = {curve_of(search, "OPS", &SearchPoint::ops),
                   curve_of(search, "regulated", &SearchPoint::regulated)};
    return line_plot(plot);
}

Markup error_plot(const SearchRecord& search) {
    LinePlot plot = over_time("Best error over time",
                              "the lowest share of wrong hold-out samples of all trials so far");
    Series series{"error of the best trial", {}};
    for (const SearchPoint& point : search.curve) {
        const double error = point.trials > 0 ? 1 - point.best_accuracy : kNone;
        series.points.push_back({point.seconds, error});
    }
    plot.series = {std::move(series)};
    return line_plot(plot);
}

using Family = std::map<TrialId, const FamilyRecord*>;

Point place_of(const FamilyRecord& trial) {
    return {trial.end_seconds, trial.accuracy};
}

Series lineage_of_best(const SearchRecord& search, const Family& family) {
    Series series{"ancestors of the best", {}};
    for (auto found = family.find(search.best);
         found != family.end() && series.points.size() <= family.size();
         found = family.find(found->second->parent)) {
        series.points.push_back(place_of(*found->second));
    }
    return series;
}

/// A dot for each trial, by the time of its end and its accuracy, with a line to its parent.
Markup family_plot(const SearchRecord& search) {
    Family family;
    for (const FamilyRecord& trial : search.family) family.emplace(trial.id, &trial);
    LinePlot plot = over_time("Family tree",
                              "accuracy of each trial on the hold-out, by the end "
                              "of the trial, with a line from its parent");
    plot.y_format = [](double accuracy) { return fmt::format("{:.2f}", accuracy); };
    for (const char* kind : kKinds) {
        Series dots{*kind == '\0' ? "root" : kind, {}}, lines;
        for (const FamilyRecord& trial : search.family) {
            if (trial.edit != kind) continue;
            dots.points.insert(dots.points.end(), {place_of(trial), {kNone, kNone}});
            const auto parent = family.find(trial.parent);
            if (parent == family.end()) continue;
            lines.points.insert(lines.points.end(),
                                {place_of(*parent->second), place_of(trial), {kNone, kNone}});
        }
        plot.dots.push_back(std::move(dots));
        plot.raw.push_back(std::move(lines));
    }
    plot.series = {lineage_of_best(search, family)};
    return line_plot(plot);
}

Markup spent_bar(const SearchSeconds& spent) {
    const std::vector<std::string> names{"proposing", "building", "training", "evaluating",
                                         "other"};
    std::vector<double> shares{spent.proposing, spent.building, spent.training, spent.evaluating,
                               spent.other};
    double sum = 0;
    for (const double seconds : shares) sum += seconds;
    std::string description;
    for (std::size_t part = 0; part < shares.size(); ++part) {
        shares[part] = sum > 0 ? shares[part] / sum : 0;
        description +=
            fmt::format("{}{} {:.1f} %", part == 0 ? "" : ", ", names[part], 100 * shares[part]);
    }
    return element(R"(div class="bars")",
                   {stack_legend(names), share_bar(shares, description), note(description)});
}

}  // namespace

Markup search_section(const RunRecord& record) {
    if (!record.search) return {};
    const SearchRecord& search = *record.search;
    Markup ends;
    for (const std::string& reason : search.early_ends)
        ends += paragraph(fmt::format("Ended early: {}", reason));
    const Markup numbers = facts(
        {{"OPS", text(human_flops({search.ops, ""})), "training and evaluation, ledger aiperf"},
         {"regulated", text(human_flops({search.regulated, ""})),
          "OPS x -ln(error of the best trial)"},
         {"best accuracy", text(fmt::format("{:.4f}", search.best_accuracy)),
          fmt::format("trial {} of group {}, on {} held-out samples", search.best.sequence,
                      search.best.group, search.hold_out_samples)},
         {"trials", text(format_count(search.trials))},
         {"stability", text(fmt::format("{:.3f}", search.stability)),
          "largest relative deviation of OPS in the second half"},
         {"seconds", text(fmt::format("{:.1f}", search.seconds)), "of the longest group"}});
    return section("search", "Architecture search",
                   numbers + ends + family_plot(search) + speed_plot(search) + error_plot(search) +
                       paragraph("Time of all groups:") + spent_bar(search.spent));
}

}  // namespace hpcai::report
