// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/core.h>

#include <hpcai/base/rounding.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/report/html.hpp>
#include <hpcai/report/record_text.hpp>

#include "chart.hpp"
#include "markup.hpp"

namespace hpcai::report {
namespace {

constexpr std::size_t kLossBins = 250;    // points of a curve, at most
constexpr std::size_t kMinSmoothed = 50;  // with fewer steps, lines are not smoothed
constexpr std::size_t kMemberRows = 16;   // more members share a row
constexpr std::size_t kUnfoldedRows = 30;
constexpr const char* kTopFive = "Top-5";

/// What the metric of a task adds to the page.
struct MetricParts {
    std::vector<std::pair<std::string, Quantity>> alternatives = {};  // other vote, out of bag
    std::vector<Fact> facts = {};
    Markup classes = {};  // a section, or empty
};

MetricParts parts_of(const TopAccuracyRecord& metric, const Quantity&) {
    return {
        .alternatives = {{"majority vote", metric.ensemble_majority},
                         {"out of bag", metric.out_of_bag}},
        .facts = {{"out of bag", quantity(metric.out_of_bag, "{:.4f}"),
                   fmt::format("on {} training samples", format_count(metric.out_of_bag_samples))},
                  {kTopFive, quantity(metric.ensemble_top_5, "{:.4f}")}}};
}

MetricParts parts_of(const AveragePrecisionRecord& metric, const Quantity& ensemble) {
    MetricParts parts{.facts = {{"VOC AP50", quantity(metric.ensemble_voc_ap50, "{:.4f}")},
                                {"AP10", quantity(metric.ensemble_ap10, "{:.4f}")}}};
    if (metric.categories.empty()) return parts;
    Table rows{
        .caption = "Detections of the ensemble by category",
        .columns = {left("category"), "boxes", "detections", "hits", "AP50", "VOC AP50", "AP10"},
        .unfolded = kUnfoldedRows};
    for (const CategoryRecord& one : metric.categories) {
        rows.rows.push_back(row(one.name, format_count(one.boxes), format_count(one.detections),
                                format_count(one.hits), quality_text(one.ap50),
                                quality_text(one.voc_ap50), quality_text(one.ap10)));
    }
    rows.totals.push_back(row("mean", "", "", "", quality_text(ensemble),
                              quality_text(metric.ensemble_voc_ap50),
                              quality_text(metric.ensemble_ap10)));
    parts.classes = section("categories", "Categories", table(rows));
    return parts;
}

MetricParts parts_of(const MeanIouRecord& metric, const Quantity& ensemble) {
    MetricParts parts{
        .alternatives = {{"majority vote", metric.ensemble_majority}},
        .facts = {{"pixel accuracy", quantity(metric.ensemble_pixel_accuracy, "{:.4f}")}}};
    if (metric.segments.empty()) return parts;
    Table rows{.caption = "Predictions of the ensemble by class of cells",
               .columns = {left("class"), "cells", "predicted", "hits", "IoU"},
               .unfolded = kUnfoldedRows};
    for (const SegmentRecord& one : metric.segments) {
        rows.rows.push_back(row(one.name, format_count(one.cells), format_count(one.predicted),
                                format_count(one.hits), quality_text(one.iou)));
    }
    rows.totals.push_back(row("mean", "", "", "", quality_text(ensemble)));
    parts.classes = section("segments", "Classes", table(rows));
    return parts;
}

MetricParts parts_of(const RunRecord& record) {
    const QualityRecord& quality = record.quality;
    MetricParts parts = std::visit(
        [&](const auto& metric) { return parts_of(metric, quality.ensemble); }, quality.metric);
    if (record.workload.classes <= 5)  // every answer is among the first five
        std::erase_if(parts.facts, [](const Fact& fact) { return fact.name == kTopFive; });
    return parts;
}

Markup confusions(const std::vector<ConfusionRecord>& confusions) {
    if (confusions.empty()) return {};
    Table rows{.caption = "Classes that the ensemble confuses most",
               .columns = {left("true class"), left("predicted class"), "test samples"}};
    for (const ConfusionRecord& one : confusions) {
        rows.rows.push_back(row(one.label, one.predicted, format_count(one.samples)));
    }
    return section("confusions", "Confusions", table(rows));
}

Markup loss_curves(const PageContent& content) {
    std::vector<Series> series;
    std::size_t steps = 0;
    for (std::size_t group = 0; group < content.steps.size(); ++group) {
        steps = std::max(steps, content.steps[group].size());
        Series one = loss_by_step(fmt::format("group {}", group), content.steps[group], kLossBins);
        if (!one.points.empty()) series.push_back(std::move(one));
    }
    if (series.empty()) return {};
    if (steps == 1) return note("There is no learning curve because each group has one step.");
    LinePlot plot;
    plot.title = "Training loss by step";
    plot.description =
        fmt::format("Training loss of {} by step.", counted(std::ssize(series), "group"));
    plot.x_name = steps > kLossBins
                      ? fmt::format("step; each point is the mean of {} neighbouring steps",
                                    ceil_div(steps, kLossBins))
                      : "step";
    add_series(std::move(series), kLossBins, plot);
    if (plot.bands.empty() && steps >= kMinSmoothed) {
        plot.raw = std::exchange(plot.series, smoothed(plot.series));
        plot.x_name += "; light lines are not smoothed";
    }
    return line_plot(plot);
}

Markup quality_curves(const RunRecord& record) {
    std::vector<Series> series;
    int last = 0;
    for (const GroupRecord& group : record.work.groups) {
        Series one{fmt::format("group {}", group.group), {}};
        for (const EpochQualityRecord& point : group.quality_by_epoch) {
            one.points.push_back({static_cast<double>(point.epoch), point.quality});
            last = std::max(last, point.epoch);
        }
        if (!one.points.empty()) series.push_back(std::move(one));
    }
    if (series.empty()) return {};
    LinePlot plot;
    plot.title = "Quality by epoch";
    plot.description = fmt::format("Quality ({}) of {} on the test samples over {}.",
                                   metric_name(record.quality.metric),
                                   counted(std::ssize(series), "model"), counted(last, "epoch"));
    plot.x_name = "epochs done";
    add_series(std::move(series), kLossBins, plot);
    const double target = record.quality.target;
    plot.series.push_back({"target", {{0, target}, {static_cast<double>(last), target}}});
    return line_plot(plot) +
           facts({{"time to quality", quantity(record.time.time_to_quality_seconds, "{:.2f}", "s"),
                   "of training, until every model reached the target"}});
}

/// The common scale of all qualities, with a margin at both ends.
class Scale {
public:
    Scale(const QualityRecord& quality, const MetricParts& parts) : target_(quality.target) {
        add({quality.target, ""});
        for (const Quantity& member : quality.members) add(member);
        for (const Quantity* one :
             {&quality.members_mean, &quality.ensemble, &quality.confidence_interval.low,
              &quality.confidence_interval.high}) {
            add(*one);
        }
        for (const auto& [name, value] : parts.alternatives) add(value);
        const double margin = std::max(0.02, 0.05 * (high_ - low_));
        low_ = std::max(0.0, low_ - margin);
        high_ = std::min(1.0, high_ + margin);
        if (!(high_ > low_)) low_ = 0, high_ = 1;
    }

    /// A mark for each of `dots` and a line over `interval`, which is empty or has two ends.
    Markup plot_of(const std::vector<double>& dots, const std::vector<double>& interval,
                   const std::string& description) const {
        Markup drawn = element("title", {text(description)});
        drawn += Markup{R"(<path class="grid" d="M0 10H1000"/>)"};
        if (std::isfinite(target_)) {
            drawn += Markup{
                fmt::format(R"(<path class="target" d="M{:.1f} 0V20"/>)", position(target_))};
        }
        if (!interval.empty()) {
            drawn += Markup{fmt::format(R"(<path class="interval" d="M{:.1f} 10H{:.1f}"/>)",
                                        position(interval[0]), position(interval[1]))};
        }
        std::string marks;
        for (const double dot : dots) marks += fmt::format("M{:.1f} 10h0", position(dot));
        drawn += Markup{fmt::format(R"(<path class="dots" d="{}"/>)", marks)};
        return element(
            R"(svg class="mark" viewBox="0 0 1000 20" preserveAspectRatio="none" role="img")",
            {drawn});
    }
    std::string description() const {
        return fmt::format("The scale is {:.4f} to {:.4f}; the vertical line is the target, {}.",
                           low_, high_, number({target_, ""}, "{:.4f}"));
    }

private:
    double position(double value) const {
        return 1000 * std::clamp((value - low_) / (high_ - low_), 0.0, 1.0);
    }
    void add(const Quantity& quantity) {
        if (!is_finite(quantity) || *quantity.value < 0 || *quantity.value > 1) return;
        low_ = std::min(low_, *quantity.value);
        high_ = std::max(high_, *quantity.value);
    }

    double target_;
    double low_ = 1, high_ = 0;
};

using Rows = std::vector<std::vector<Markup>>;

void add_row(const Scale& scale, const std::string& name, const Quantity& value,
             const std::vector<double>& interval, Rows& rows) {
    const std::string shown = quality_text(value);
    rows.push_back(row(name,
                       is_finite(value)
                           ? scale.plot_of({*value.value}, interval, name + ": " + shown)
                           : element(R"(span class="reason")", {text(value.reason)}),
                       shown));
}

void add_members(const QualityRecord& quality, const Scale& scale, Rows& rows) {
    if (quality.members.size() <= kMemberRows) {
        for (std::size_t group = 0; group < quality.members.size(); ++group) {
            add_row(scale, fmt::format("member {}", group), quality.members[group], {}, rows);
        }
        return;
    }
    std::vector<double> dots;
    for (const Quantity& member : quality.members) {
        if (is_finite(member)) dots.push_back(*member.value);
    }
    std::ranges::sort(dots);
    const std::string extremes =
        dots.empty() ? "n/a" : fmt::format("{:.4f}\xE2\x80\x93{:.4f}", dots.front(), dots.back());
    rows.push_back(row(fmt::format("{} members", dots.size()),
                       scale.plot_of(dots, {}, "members: " + extremes), extremes));
}

Markup quality_chart(const QualityRecord& quality, const MetricParts& parts) {
    const Scale scale(quality, parts);
    const IntervalRecord& interval = quality.confidence_interval;
    std::vector<double> ensemble_interval;
    if (is_finite(interval.low) && is_finite(interval.high)) {
        ensemble_interval = {*interval.low.value, *interval.high.value};
    }
    Table marks{.caption = fmt::format("Quality ({}) of the members and of their ensemble",
                                       metric_name(quality.metric)),
                .columns = {left(""), left(""), "quality"},
                .unfolded = kMemberRows + 5};
    add_members(quality, scale, marks.rows);
    add_row(scale, "members\xE2\x80\x99 mean", quality.members_mean, {}, marks.rows);
    add_row(scale, "ensemble", quality.ensemble, ensemble_interval, marks.rows);
    for (const auto& [name, value] : parts.alternatives) {
        add_row(scale, name, value, {}, marks.rows);
    }
    return element(R"(div class="marks")", {table(marks)}) + note(scale.description());
}

Markup limits_of(const IntervalRecord& interval, std::string_view format) {
    Markup limits = quantity(interval.low, format);
    if (is_finite(interval.low)) limits += text(" to ") + quantity(interval.high, format);
    return limits;
}

Markup quality_facts(const RunRecord& record, const MetricParts& parts) {
    const QualityRecord& quality = record.quality;
    const IntervalRecord& interval = quality.confidence_interval;
    const Quantity& penalty = record.scores.penalty_coefficient;
    std::vector<Fact> rows{
        {"penalty coefficient", quantity(penalty, penalty_format(penalty)),
         fmt::format("(ensemble / target) to the power of {}, eq. 8",
                     number({quality.exponent, ""}, "{}"))},
        {"ensemble gain", quantity(quality.ensemble_gain, "{:+.4f}"),
         "over the members\xE2\x80\x99 mean"},
        {number({100 * interval.level, ""}, "{:.0f}") + "\xC2\xA0% interval",
         limits_of(interval, "{:.4f}"), interval.method},
        {"interval over members", limits_of(quality.members_interval, "{:.4f}"),
         quality.members_interval.method},
        {"interval of VFLOPS", limits_of(record.scores.vflops_interval, "{:.3e}"),
         record.scores.vflops_interval.method}};
    rows.insert(rows.end(), parts.facts.begin(), parts.facts.end());
    return facts(rows);
}

}  // namespace

Markup quality_section(const PageContent& content) {
    Markup curves = loss_curves(content);
    if (curves.html.empty()) {
        curves = note(has_steps(content.steps)
                          ? "There is no learning curve because the files steps.csv have no loss."
                          : "There is no learning curve because there is no readable steps.csv.");
    }
    curves += quality_curves(content.record);
    Markup remarks;
    for (const std::string& remark : content.remarks) remarks += note(remark);
    const MetricParts parts = parts_of(content.record);
    return section("learning", "Learning", curves + remarks) +
           section("ensemble", "Ensemble",
                   quality_chart(content.record.quality, parts) +
                       quality_facts(content.record, parts)) +
           confusions(content.confusions) + parts.classes;
}

}  // namespace hpcai::report
