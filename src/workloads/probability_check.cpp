// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <utility>

#include <hpcai/evaluation/top_k.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/workloads/probability_check.hpp>

namespace hpcai::workloads {
namespace {

constexpr std::size_t kHeaderLimitBytes = std::size_t{1} << 16;

bool are_close(float stored, float computed, float tolerance) {
    if (std::isnan(stored) || std::isnan(computed))
        return std::isnan(stored) == std::isnan(computed);
    return std::abs(stored - computed) <= tolerance;
}

}  // namespace

ProbabilityCheck::ProbabilityCheck(const CheckedResult& result, ProbabilityTask task)
    : result_(result),
      task_(std::move(task)),
      soft_(evaluation::Vote::soft, task_.classes),
      majority_(evaluation::Vote::majority, task_.classes) {
    labels_ = read<std::int32_t>(labels_name(), task_.label_shape(result_.samples), labels_digest_);
    if (labels_) count_unscored();
    const auto lines = result_.inspector.read_text("evaluation/samples.txt");
    const auto count = lines ? std::count(lines->begin(), lines->end(), '\n') : result_.samples;
    if (count != result_.samples) {
        result_.inspector.report("evaluation/samples.txt",
                                 "number of lines is {}; must be {}, one per sample", count,
                                 result_.samples);
    } else if (lines && labels_ && result_.config.data.kind == config::DataKind::image_folder) {
        check_folders(*lines);
    }
}

/// Checks that samples have the class of their folder. Classes are numbered by folder name.
void ProbabilityCheck::check_folders(const std::string& names) {
    std::map<std::string, std::int32_t> classes;
    std::istringstream lines(names);
    const auto labels = labels_->as<std::int32_t>();
    for (std::size_t sample = 0; sample < labels.size(); ++sample) {
        std::string name;
        std::getline(lines, name);
        if (labels[sample] == evaluation::kPaddingLabel) continue;
        const auto [first, is_new] =
            classes.emplace(name.substr(0, name.find('/')), labels[sample]);
        const auto next = std::next(first);
        if (first->second == labels[sample] &&
            (first == classes.begin() || std::prev(first)->second < labels[sample]) &&
            (next == classes.end() || next->second > labels[sample])) {
            continue;
        }
        result_.inspector.report(
            labels_name(), "label of sample {} is {}, which is not the class of its folder {}",
            sample, labels[sample], first->first);
        return;
    }
}

/// Reports the first row that is no probability distribution, except rows of NaN, the softmax of
/// non-finite outputs. Returns whether a value lies strictly between 0 and 1.
bool ProbabilityCheck::check_rows(const std::string& name, std::span<const float> values) {
    constexpr double kTolerance = 1e-3;  // of the sum of a row
    const auto width = static_cast<std::size_t>(task_.classes);
    bool has_inner_value = false;
    for (std::size_t first = 0; first < values.size(); first += width) {
        const auto row = values.subspan(first, width);
        if (std::ranges::all_of(row, [](float value) { return std::isnan(value); })) continue;
        const float minimum = *std::ranges::min_element(row);
        const double sum = std::accumulate(row.begin(), row.end(), 0.0);
        if (!(minimum >= 0 && std::abs(sum - 1) <= kTolerance)) {
            result_.inspector.report(name,
                                     "{} {} has the minimum {} and the sum {}; must be "
                                     "probabilities: 0 or more with sum 1",
                                     row_name(), first / width, minimum, sum);
            return false;
        }
        has_inner_value |= std::ranges::any_of(row, [](float p) { return p > 0 && p < 1; });
    }
    return has_inner_value;
}

bool ProbabilityCheck::add_member(int group, GroupResult& result) {
    if (unscored_ > result.bad_samples) {
        report_unscored(fmt::format("at most {}, the bad_samples of {}record.json",
                                    result.bad_samples, group_prefix(group)));
    }
    const std::string name = group_prefix(group) + kProbabilityFiles.member;
    const auto values =
        read<float>(name, task_.shape(result_.samples), result.record.predictions_sha256);
    if (!values || !labels_) {
        is_complete_ = false;
        return false;
    }
    result_.inspector.attempt(labels_name(), [&] {
        task_.score_member({values->as<float>(), labels_->as<std::int32_t>(), task_.classes},
                           result);
    });
    member_names_.push_back(name);
    soft_.add(values->as<float>());
    majority_.add(values->as<float>());
    return check_rows(name, values->as<float>());
}

void ProbabilityCheck::finish(QualityRecord& quality) {
    if (labels_) quality.labels_sha256 = labels_digest_;
    const std::string name = "evaluation/" + kProbabilityFiles.ensemble;
    const auto stored = read<float>(name, task_.shape(result_.samples), quality.ensemble_sha256);
    if (!stored || !is_complete_ || member_names_.empty()) return;
    const std::span<const float> predicted = stored->as<float>();
    const std::vector<float> majority = majority_.result();
    const bool uses_majority = result_.config.bagging.aggregation == config::Aggregation::majority;
    compare_probabilities(name, predicted, uses_majority ? majority : soft_.result());
    const auto labels = labels_->as<std::int32_t>();
    const MetricRecord stored_metric = quality.metric;
    result_.inspector.attempt(labels_name(), [&] {
        task_.score_vote({{predicted, labels, task_.classes},
                          {uses_majority ? predicted : std::span(majority), labels, task_.classes},
                          uses_majority},
                         quality);
    });
    add_quality(labels, stored_metric, quality);
}

void ProbabilityCheck::append_rows(const std::string& name, std::size_t first, std::size_t count,
                                   std::vector<float>& rows) const {
    const auto path = result_.inspector.checked_path(name);
    const auto width = static_cast<std::size_t>(task_.classes);
    const std::size_t data = static_cast<std::size_t>(result_.samples) * width * sizeof(float);
    const auto header = static_cast<std::size_t>(std::filesystem::file_size(path)) - data;
    std::vector<float> values(count * width);
    std::ifstream file(path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(header + first * width * sizeof(float)));
    file.read(reinterpret_cast<char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(float)));
    require(file.good(), ExitCode::data, "{}: cannot be read a second time", name);
    rows.insert(rows.end(), values.begin(), values.end());
}

/// Counts the samples that lack labels and reports them unless data.on_bad_sample is skip. Reports
/// the first sample that has labels in only some rows.
void ProbabilityCheck::count_unscored() {
    const auto rows = static_cast<std::size_t>(task_.rows_per_sample());
    const auto labels = labels_->as<std::int32_t>();
    for (std::size_t first = 0; first < labels.size(); first += rows) {
        const auto absent =
            std::ranges::count(labels.subspan(first, rows), evaluation::kPaddingLabel);
        if (absent > 0) ++unscored_;
        if (absent == 0 || std::cmp_equal(absent, rows)) continue;
        result_.inspector.report(labels_name(),
                                 "sample {} has {} unscored of {} cells; must have none or all",
                                 first / rows, absent, rows);
        break;
    }
    if (unscored_ > 0 && result_.config.data.on_bad_sample != config::BadSamplePolicy::skip) {
        report_unscored("0, according to data.on_bad_sample");
    }
}

void ProbabilityCheck::report_unscored(const std::string& limit) {
    result_.inspector.report(labels_name(), "number of unscored samples is {}; must be {}",
                             unscored_, limit);
}

template <typename T>
std::optional<storage::NpyArray> ProbabilityCheck::read(const std::string& name,
                                                        const tensor::Shape& shape,
                                                        std::string& digest) {
    return result_.inspector.attempt(name, [&] {
        const std::size_t limit_bytes =
            sizeof(T) * static_cast<std::size_t>(shape.elements()) + kHeaderLimitBytes;
        const auto bytes = result_.inspector.read_bytes(name, limit_bytes);
        storage::NpyArray array = storage::parse_npy(bytes, name);
        require_array(array, tensor::dtype_of<T>(), shape);
        digest = storage::sha256_hex(bytes);
        return array;
    });
}

void ProbabilityCheck::compare_probabilities(const std::string& name, std::span<const float> stored,
                                             const std::vector<float>& computed) {
    // The order of the sums may differ, which changes only the means of three or more members.
    const auto members = static_cast<float>(member_names_.size());
    const float tolerance = members < 3 ? 0 : members * 0x1p-23F;
    for (std::size_t index = 0; index < stored.size(); ++index) {
        if (are_close(stored[index], computed[index], tolerance)) continue;
        const auto width = static_cast<std::size_t>(task_.classes);
        result_.inspector.report(name, "{} {}, class {} is {}; must be {}, according to {}{}",
                                 row_name(), index / width, index % width, stored[index],
                                 computed[index], "groups/*/", kProbabilityFiles.member);
        return;
    }
}

}  // namespace hpcai::workloads
