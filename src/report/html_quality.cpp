// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include <hpcai/base/rounding.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/report/html.hpp>

#include "chart.hpp"
#include "markup.hpp"

namespace hpcai::report {
namespace {

constexpr std::size_t kLossBins = 250;
constexpr std::size_t kSmoothedSteps = 50;  // with fewer steps, lines are not smoothed
constexpr std::size_t kMemberRows = 16;
constexpr std::size_t kUnfoldedRows = 30;

/// The quality of another way to combine or evaluate the base models, by the same metric.
struct AlternativeQuality {
    std::string name;
    Quantity quality;
};

std::vector<AlternativeQuality> alternative_qualities(const TopAccuracyRecord& metric) {
    return {{"majority vote", metric.ensemble_majority}, {"out of bag", metric.out_of_bag}};
}

std::vector<AlternativeQuality> alternative_qualities(const AveragePrecisionRecord&) {
    return {};
}

std::vector<AlternativeQuality> alternative_qualities(const MeanIouRecord& metric) {
    return {{"majority vote", metric.ensemble_majority}};
}

std::vector<Fact> facts_of(const TopAccuracyRecord& metric) {
    return {{"out of bag", quantity(metric.out_of_bag, "{:.4f}"),
             fmt::format("on {} training samples", format_count(metric.out_of_bag_samples))},
            {"Top-5", quantity(metric.ensemble_top_5, "{:.4f}")}};
}

std::vector<Fact> facts_of(const AveragePrecisionRecord& metric) {
    return {{"VOC AP50", quantity(metric.ensemble_voc_ap50, "{:.4f}")},
            {"AP10", quantity(metric.ensemble_ap10, "{:.4f}")}};
}

std::vector<Fact> facts_of(const MeanIouRecord& metric) {
    return {{"pixel accuracy", quantity(metric.ensemble_pixel_accuracy, "{:.4f}")}};
}

Markup classes_of(const TopAccuracyRecord&, const Quantity&) {
    return {};
}

Markup classes_of(const AveragePrecisionRecord& metric, const Quantity& mean) {
    if (metric.categories.empty()) return {};
    Table rows;
    rows.caption = "Detections of the ensemble by category";
    rows.columns = {left("category"), "boxes", "detections", "hits", "AP50", "VOC AP50", "AP10"};
    rows.unfolded = kUnfoldedRows;
    for (const CategoryRecord& one : metric.categories) {
        rows.rows.push_back(row(one.name, format_count(one.boxes), format_count(one.detections),
                                format_count(one.hits), quality_text(one.ap50),
                                quality_text(one.voc_ap50), quality_text(one.ap10)));
    }
    rows.totals.push_back(row("mean", "", "", "", quality_text(mean),
                              quality_text(metric.ensemble_voc_ap50),
                              quality_text(metric.ensemble_ap10)));
    return section("categories", "Categories", table(rows));
}

Markup classes_of(const MeanIouRecord& metric, const Quantity& mean) {
    if (metric.segments.empty()) return {};
    Table rows;
    rows.caption = "Predictions of the ensemble by class of cells";
    rows.columns = {left("class"), "cells", "predicted", "hits", "IoU"};
    rows.unfolded = kUnfoldedRows;
    for (const SegmentRecord& one : metric.segments) {
        rows.rows.push_back(row(one.name, format_count(one.cells), format_count(one.predicted),
                                format_count(one.hits), quality_text(one.iou)));
    }
    rows.totals.push_back(row("mean", "", "", "", quality_text(mean)));
    return section("segments", "Classes", table(rows));
}

Markup confusions(const std::vector<ConfusionRecord>& confusions) {
    if (confusions.empty()) return {};
    Table rows;
    rows.caption = "Classes that the ensemble confuses most";
    rows.columns = {left("true class"), left("predicted class"), "test samples"};
    for (const ConfusionRecord& one : confusions) {
        rows.rows.push_back(row(one.label, one.predicted, format_count(one.samples)));
    }
    return section("confusions", "Confusions", table(rows));
}

std::vector<AlternativeQuality> other_qualities(const MetricRecord& metric) {
    return std::visit([](const auto& numbers) { return alternative_qualities(numbers); }, metric);
}

std::vector<Fact> metric_facts(const MetricRecord& metric) {
    return std::visit([](const auto& numbers) { return facts_of(numbers); }, metric);
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
    LinePlot plot;
    plot.title = "Training loss by step";
    plot.description =
        fmt::format("Training loss of {} by step.", counted(std::ssize(series), "group"));
    plot.x_name = steps > kLossBins
                      ? fmt::format("step; each point is the mean of {} neighbouring steps",
                                    ceil_div(steps, kLossBins))
                      : "step";
    add_series(std::move(series), kLossBins, plot);
    if (plot.bands.empty() && steps >= kSmoothedSteps) {
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
    explicit Scale(const QualityRecord& quality) : target_(quality.target) {
        add({quality.target, ""});
        for (const Quantity& member : quality.members) add(member);
        for (const Quantity* one :
             {&quality.members_mean, &quality.ensemble, &quality.confidence_interval.low,
              &quality.confidence_interval.high}) {
            add(*one);
        }
        for (const AlternativeQuality& other : other_qualities(quality.metric)) add(other.quality);
        const double margin = std::max(0.02, 0.05 * (high_ - low_));
        low_ = std::max(0.0, low_ - margin);
        high_ = std::min(1.0, high_ + margin);
        if (!(high_ > low_)) low_ = 0, high_ = 1;
    }

    Markup plot_of(const std::vector<double>& dots, const std::vector<double>& interval,
                   const std::string& description) const {
        return dot_plot({dots, interval, target_, low_, high_, description});
    }
    std::string text() const {
        return fmt::format("The scale is {:.4f} to {:.4f}; the vertical line is the target, {}.",
                           low_, high_, number({target_, ""}, "{:.4f}"));
    }

private:
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
    const std::vector<double> dots =
        is_finite(value) ? std::vector{*value.value} : std::vector<double>{};
    const std::string shown = quality_text(value);
    rows.push_back(row(name,
                       is_finite(value) ? scale.plot_of(dots, interval, name + ": " + shown)
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

Markup quality_chart(const RunRecord& record) {
    const QualityRecord& quality = record.quality;
    const Scale scale(quality);
    const IntervalRecord& interval = quality.confidence_interval;
    std::vector<double> ensemble_interval;
    if (is_finite(interval.low) && is_finite(interval.high)) {
        ensemble_interval = {*interval.low.value, *interval.high.value};
    }
    Table marks;
    marks.caption = fmt::format("Quality ({}) of the members and of their ensemble",
                                metric_name(quality.metric));
    marks.columns = {left(""), left(""), "quality"};
    marks.unfolded = kMemberRows + 5;
    add_members(quality, scale, marks.rows);
    add_row(scale, "members\xE2\x80\x99 mean", quality.members_mean, {}, marks.rows);
    add_row(scale, "ensemble", quality.ensemble, ensemble_interval, marks.rows);
    for (const auto& [name, value] : other_qualities(quality.metric)) {
        add_row(scale, name, value, {}, marks.rows);
    }
    return element(R"(div class="marks")", {table(marks)}) + note(scale.text());
}

Markup limits_of(const IntervalRecord& interval, std::string_view format) {
    Markup limits = quantity(interval.low, format);
    if (is_finite(interval.low)) limits += text(" to ") + quantity(interval.high, format);
    return limits;
}

Markup quality_facts(const RunRecord& record) {
    const QualityRecord& quality = record.quality;
    const IntervalRecord& interval = quality.confidence_interval;
    std::vector<Fact> rows{
        {"penalty coefficient", quantity(record.scores.penalty_coefficient, "{:.4f}"),
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
    std::ranges::move(metric_facts(quality.metric), std::back_inserter(rows));
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
    return section("learning", "Learning", curves + remarks) +
           section("ensemble", "Ensemble",
                   quality_chart(content.record) + quality_facts(content.record));
}

Markup classes_section(const PageContent& content) {
    const QualityRecord& quality = content.record.quality;
    return confusions(content.confusions) +
           std::visit([&](const auto& numbers) { return classes_of(numbers, quality.ensemble); },
                      quality.metric);
}

}  // namespace hpcai::report
