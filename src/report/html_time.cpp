// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <hpcai/base/units.hpp>
#include <hpcai/report/html.hpp>

#include "chart.hpp"
#include "markup.hpp"

namespace hpcai::report {
namespace {

constexpr std::size_t kPhaseBins = 120;  // points of a plot over time, at most

/// The launches that resumed groups; empty if the whole run was one launch.
Markup resumes(const RunRecord& record) {
    Table rows{.caption = "Resumed groups",
               .columns = {left("group"), "at step", left("by the launch of")}};
    for (const GroupRecord& group : record.work.groups)
        for (const ContinuationRecord& one : group.continuations)
            rows.rows.push_back(row(group.group, one.step, one.started_utc));
    if (rows.rows.empty()) return {};
    return note(
               "Training covers all launches; start-up, staging, vote and total only the last "
               "one.") +
           table(rows);
}

/// The facts "evaluation", "vote" and "total", and "rest" unless several launches trained.
std::vector<Fact> last_phases(const RunRecord& record, bool is_resumed) {
    const TimeRecord& time = record.time;
    double evaluation = NAN, longest = 0;  // `longest`: training with evaluation
    for (const GroupRecord& group : record.work.groups) {
        const double seconds = group.evaluation_seconds.value.value_or(NAN);
        evaluation = std::fmax(evaluation, seconds);
        longest = std::fmax(longest, group.training_seconds.value.value_or(NAN) + seconds);
    }
    std::vector<Fact> rows{
        {"evaluation", quantity({evaluation, "no group finished"}, "{:.2f}", "s"),
         "maximum over all groups"},
        {"vote", quantity(time.vote_seconds, "{:.2f}", "s")}};
    const double rest =
        time.total_seconds.value.value_or(NAN) - time.startup_seconds.value.value_or(NAN) -
        time.staging_seconds.value.value_or(0) - time.vote_seconds.value.value_or(0) - longest;
    if (!is_resumed && std::isfinite(rest))
        rows.push_back(
            {"rest", quantity({std::max(rest, 0.0), ""}, "{:.2f}", "s"),
             "files such as the last checkpoint, audits, evaluations between epochs, waits"});
    rows.push_back({"total", quantity(time.total_seconds, "{:.2f}", "s")});
    return rows;
}

Markup run_phases(const RunRecord& record) {
    const TimeRecord& time = record.time;
    double epochs = 0;
    for (const double one : time.epoch_seconds) epochs += one;
    const bool has_epochs = !time.epoch_seconds.empty() && std::isfinite(epochs);
    const Quantity mean =
        has_epochs ? Quantity{epochs / static_cast<double>(time.epoch_seconds.size()), ""}
                   : no_value("no epoch finished");
    const std::string count = fmt::format("over {}, each the maximum over all groups",
                                          counted(std::ssize(time.epoch_seconds), "epoch"));
    const Markup resumed = resumes(record);
    std::vector<Fact> rows{{"start-up", quantity(time.startup_seconds, "{:.2f}", "s")},
                           {"staging", quantity(time.staging_seconds, "{:.2f}", "s")},
                           {"training", quantity(time.training_seconds, "{:.2f}", "s"),
                            "longest of all groups, the denominator of eq. 6"},
                           {"mean epoch", quantity(mean, "{:.2f}", "s"), has_epochs ? count : ""}};
    std::ranges::move(last_phases(record, !resumed.html.empty()), std::back_inserter(rows));
    return facts(rows) + resumed;
}

std::string percent(double share) {
    return std::isfinite(share) ? fmt::format("{:.1f}", 100 * share) : "n/a";
}

Markup training_time_table(const RunRecord& record) {
    // Colors are those of phase_names(), with backward's for computation.
    const std::vector<std::string> names{"input wait", "", "computation", "exposed communication"};
    Table rows{.caption = "Seconds of each group (means over ranks from input wait to checkpoints)",
               .columns = {left("group"), left("shares"), "input wait", "communication",
                           "checkpoints", "training", "evaluation"}};
    for (const GroupRecord& group : record.work.groups) {
        const double training = group.training_seconds.value.value_or(NAN);
        const double input = group.input_wait_seconds.value.value_or(NAN) / training;
        const double communication = group.communication_seconds.value.value_or(NAN) / training;
        const bool known = training > 0 && std::isfinite(input) && std::isfinite(communication);
        const double rest = std::max(0.0, 1 - input - communication);
        const std::string shares = fmt::format("input wait {} %, communication {} %",
                                               percent(input), percent(communication));
        rows.rows.push_back(row(
            group.group, known ? share_bar({input, 0, rest, communication}, shares) : text("n/a"),
            number(group.input_wait_seconds, "{:.2f}"),
            number(group.communication_seconds, "{:.2f}"),
            number(group.checkpoint_seconds, "{:.2f}"), number(group.training_seconds, "{:.2f}"),
            number(group.evaluation_seconds, "{:.2f}")));
    }
    return element(R"(div class="bars")", {stack_legend(names), table(rows)});
}

bool has_phases(const std::vector<StepRecord>& steps) {
    return std::ranges::any_of(phase_totals(steps), [](double one) { return std::isfinite(one); });
}

Markup phase_table(const GroupSteps& steps) {
    Table rows{.caption =
                   "Phases of a step, mean over the steps of each group\xE2\x80\x99s first rank "
                   "(percent of the step; summary.txt has medians)",
               .columns = {left("group"), left("shares")}};
    for (const std::string& name : phase_names()) rows.columns.emplace_back(name);
    rows.columns.emplace_back("step, ms");
    for (std::size_t group = 0; group < steps.size(); ++group) {
        const std::vector<double> totals = phase_totals(steps[group]);
        double sum = 0;
        for (const double one : totals) sum += std::isfinite(one) ? one : 0;
        if (!(sum > 0)) continue;
        std::vector<double> shares;
        std::vector<Markup> cells;
        for (const double one : totals) {
            shares.push_back(one / sum);
            cells.push_back(text(percent(one / sum)));
        }
        cells.insert(cells.begin(),
                     {cell(group), share_bar(shares, fmt::format("phases of group {}", group))});
        const double milliseconds = 1000 * sum / static_cast<double>(steps[group].size());
        cells.push_back(text(milliseconds < 100 ? fmt::format("{:.3g}", milliseconds)
                                                : fmt::format("{:.0f}", milliseconds)));
        rows.rows.push_back(std::move(cells));
    }
    if (rows.rows.empty()) return {};
    return element(R"(div class="bars")", {stack_legend(phase_names()), table(rows)});
}

std::size_t last_group(const GroupSteps& steps) {
    const auto end = [](const std::vector<StepRecord>& group) {
        return group.empty() || !has_phases(group) ? -1 : group.back().end_seconds;
    };
    const auto found = std::ranges::max_element(steps, {}, end);
    return static_cast<std::size_t>(found - steps.begin());
}

Markup phases_over_time(const GroupSteps& steps) {
    const std::size_t group = last_group(steps);
    if (group >= steps.size() || !has_phases(steps[group])) return {};
    const PhaseBins bins = phase_bins(steps[group], kPhaseBins);
    StackPlot plot;
    plot.title = fmt::format("Step time over the run in ms, group {} (ends last)", group);
    plot.description =
        "Stacked times of input wait, forward, backward, communication, optimizer and other.";
    plot.x_name = "step";
    plot.y_format = [](double y) { return fmt::format("{:.4g}", 1000 * y); };
    plot.names = phase_names();
    plot.x = bins.step;
    plot.layers = bins.seconds;
    return bins.step.size() > 1 ? stack_plot(plot) : Markup{};
}

Markup speed_plot(const PageContent& content) {
    double seconds = 0;
    std::size_t longest = 0;
    for (const auto& steps : content.steps) {
        if (!steps.empty()) seconds = std::max(seconds, steps.back().end_seconds);
        longest = std::max(longest, steps.size());
    }
    const std::size_t bins = std::clamp<std::size_t>(longest / 4, 8, kPhaseBins);
    const auto flops = static_cast<double>(content.record.flops.training_per_sample);
    std::vector<Series> series;
    for (std::size_t group = 0; group < content.steps.size(); ++group) {
        Series one =
            speed_over_time(fmt::format("group {}", group), content.steps[group], seconds, bins);
        for (Point& point : one.points) point.y *= flops;
        if (!one.points.empty()) series.push_back(std::move(one));
    }
    LinePlot plot;
    plot.title = "Achieved FLOPS of each group over time";
    plot.description = fmt::format("FLOPS of {} over {}.", counted(std::ssize(series), "group"),
                                   format_seconds(seconds));
    plot.x_name = fmt::format("seconds of training; each point is the mean over {}",
                              format_seconds(seconds / static_cast<double>(bins)));
    plot.x_min_step = 0;
    plot.x_format = [](double x) { return fmt::format("{:.6g}", x); };
    plot.y_format = [](double y) { return y == 0 ? "0" : format_si(y, ""); };
    add_series(std::move(series), bins, plot);
    return line_plot(plot);
}

}  // namespace

Markup time_section(const PageContent& content) {
    Markup result = run_phases(content.record) + training_time_table(content.record);
    const Markup phases = phase_table(content.steps);
    if (phases.html.empty()) {
        result += note(has_steps(content.steps) ? "The files steps.csv have no phases."
                                                : "There is no readable steps.csv.");
    } else {
        result += phases + phases_over_time(content.steps);
    }
    return section("time", "Time", result);
}

Markup utilization_section(const PageContent& content) {
    const RunRecord& record = content.record;
    const UtilizationRecord& used = record.utilization;
    const CeilingRecord& ceiling = record.roofline;
    const Markup plot =
        has_steps(content.steps)
            ? speed_plot(content)
            : note("There is no plot over time because there is no readable steps.csv.");
    const std::string which =
        is_finite(ceiling.ceiling_flops)
            ? fmt::format(
                  "The ceiling is the fastest of large matrix products and the model\xE2\x80\x99s "
                  "own convolutions in {}: {}; {}.",
                  ceiling.precision, ceiling.ceiling, ceiling.source)
            : fmt::format("There is no ceiling: {}.", ceiling.ceiling_flops.reason);
    return section(
        "utilization", "Utilization",
        plot +
            facts({{"FLOPS per rank", quantity(used.flops_per_rank, "{:.3e}")},
                   {"roofline: large matrix products", quantity(ceiling.gemm_flops, "{:.3e}")},
                   {"roofline: the model\xE2\x80\x99s convolutions",
                    quantity(ceiling.model_convolution_flops, "{:.3e}")},
                   {"ceiling per rank", quantity(ceiling.ceiling_flops, "{:.3e}")},
                   {"samples per second and rank",
                    quantity(record.throughput.per_rank, "{:.2f}", "images/s")}}) +
            note(which));
}

}  // namespace hpcai::report
