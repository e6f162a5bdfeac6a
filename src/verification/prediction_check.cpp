// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <hpcai/evaluation/ballot.hpp>
#include <hpcai/evaluation/top_k.hpp>
#include <hpcai/storage/npy.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/judge.hpp>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

constexpr std::size_t kHeaderLimitBytes = std::size_t{1} << 16;

/// Beyond this a sum over ranks was not the mean of the members. Two are added in one way only.
float tolerance(int members) {
    return members < 3 ? 0.0F : static_cast<float>(members) * 0x1p-23F;
}

bool agree(float stored, float computed, float allowed) {
    if (std::isnan(stored) || std::isnan(computed))
        return std::isnan(stored) == std::isnan(computed);
    return std::abs(stored - computed) <= allowed;
}

class ProbabilityCheck final : public PredictionCheck {
public:
    ProbabilityCheck(const Claim& claim, Inspector& inspector)
        : claim_(claim),
          inspector_(inspector),
          names_(prediction_files(claim.config.workload)),
          task_(probability_task(claim.config, read_class_names())),
          soft_(evaluation::Vote::soft, task_.classes),
          majority_(evaluation::Vote::majority, task_.classes) {
        labels_ = read<std::int32_t>(labels_name(), task_.label_shape(samples()), nullptr);
        check_unscored();
        const auto lines = inspector.text_of("evaluation/samples.txt");
        const auto count = lines ? std::count(lines->begin(), lines->end(), '\n') : samples();
        if (count != samples()) {
            inspector.find("evaluation/samples.txt", "has {} lines; must have {}, one a sample",
                           count, samples());
        }
    }

    void add_member(int group, GroupResult& result) override {
        if (unscored_ > result.bad_samples) {
            find_unscored(fmt::format("at most {}, the bad_samples of {}record.json",
                                      result.bad_samples, group_prefix(group)));
        }
        const std::string name = group_prefix(group) + names_.member;
        const auto values =
            read<float>(name, task_.shape(samples()), &result.record.predictions_sha256);
        if (!values || !labels_) {
            is_complete_ = false;
            return;
        }
        inspector_.attempt(labels_name(), [&] {
            task_.judge_member({values->as<float>(), labels_->as<std::int32_t>(), task_.classes},
                               result);
            return 0;
        });
        member_names_.push_back(name);
        soft_.add(values->as<float>());
        majority_.add(values->as<float>());
        ++members_;
    }

    void finish(QualityRecord& quality) override {
        if (labels_) quality.labels_sha256 = labels_digest_;
        const std::string name = "evaluation/" + names_.ensemble;
        const auto stored = read<float>(name, task_.shape(samples()), &quality.ensemble_sha256);
        if (!stored || !is_complete_ || members_ == 0) return;
        const std::span<const float> said = stored->as<float>();
        const std::vector<float> majority = majority_.result();
        compare(name, said, counts_majority() ? majority : soft_.result());
        const auto labels = labels_->as<std::int32_t>();
        const MetricRecord as_stored = quality.metric;
        inspector_.attempt(labels_name(), [&] {
            task_.judge_vote(
                {{said, labels, task_.classes},
                 {counts_majority() ? said : std::span(majority), labels, task_.classes},
                 counts_majority()},
                quality);
            return 0;
        });
        if (task_.cells > 0) return;
        keep_out_of_bag(std::get<TopAccuracyRecord>(as_stored),
                        std::get<TopAccuracyRecord>(quality.metric));
        inspector_.attempt(labels_name(), [&] {
            quality.members_interval = members_interval(labels);
            return 0;
        });
    }

private:
    std::int64_t samples() const { return claim_.record.workload.validation_samples; }
    std::string labels_name() const { return "evaluation/" + names_.labels; }
    /// Of cells; elsewhere none.
    std::vector<std::string> read_class_names() {
        if (task_of(claim_.config.workload) != config::Task::segmentation) return {};
        const std::string name = std::string("evaluation/") + kClassNamesFile;
        const auto wanted = static_cast<std::size_t>(claim_.config.workload.classes) + 1;
        std::vector<std::string> names;
        const std::string text = inspector_.text_of(name).value_or("");
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) names.push_back(line);
        if (!text.empty() && text.back() != '\n') {
            inspector_.find(name, "its last line does not end");
        }
        if (names.size() != wanted) {
            inspector_.find(name, "has {} lines; must have {}, one a class", names.size(), wanted);
            names.resize(wanted);
        }
        return names;
    }
    /// Only the ranks of the run could make predictions for the out-of-bag vote.
    void keep_out_of_bag(const TopAccuracyRecord& stored, TopAccuracyRecord& computed) const {
        computed.out_of_bag_samples = stored.out_of_bag_samples;
        if (claim_.config.bagging.out_of_bag) computed.out_of_bag = stored.out_of_bag;
    }
    bool counts_majority() const {
        return claim_.config.bagging.aggregation == config::Aggregation::majority;
    }

    /// Reads the members' files once more, some samples at a time.
    IntervalRecord members_interval(std::span<const std::int32_t> labels) const {
        auto bootstrap = member_bootstrap_of(claim_.config, members_, samples());
        const std::string objection = bootstrap.objection();
        if (!objection.empty()) return members_interval_of(objection, std::nullopt);
        const auto rows = static_cast<std::size_t>(bootstrap.chunk_rows());
        for (std::size_t first = 0; first < labels.size(); first += rows) {
            const std::size_t count = std::min(rows, labels.size() - first);
            std::vector<float> chunk;
            for (const std::string& name : member_names_) add_rows(name, first, count, chunk);
            bootstrap.add(chunk, labels.subspan(first, count));
        }
        return members_interval_of("", bootstrap.interval());
    }

    /// Of a file that has been read as a whole before.
    void add_rows(const std::string& name, std::size_t first, std::size_t count,
                  std::vector<float>& rows) const {
        const auto path = inspector_.path_of(name);
        const auto width = static_cast<std::size_t>(task_.classes);
        const std::size_t all = static_cast<std::size_t>(samples()) * width * sizeof(float);
        const auto header = static_cast<std::size_t>(std::filesystem::file_size(path)) - all;
        std::vector<float> read(count * width);
        std::ifstream file(path, std::ios::binary);
        file.seekg(static_cast<std::streamoff>(header + first * width * sizeof(float)));
        file.read(reinterpret_cast<char*>(read.data()),
                  static_cast<std::streamsize>(read.size() * sizeof(float)));
        require(file.good(), ExitCode::data, "{}: cannot be read again", name);
        rows.insert(rows.end(), read.begin(), read.end());
    }

    /// Only a run that skips damaged samples leaves them without a label.
    void check_unscored() {
        if (!labels_) return;
        unscored_ = count_unscored(labels_->as<std::int32_t>());
        const auto policy = claim_.config.data.on_bad_sample;
        if (unscored_ > 0 && policy != config::BadSamplePolicy::skip) {
            find_unscored("none, by data.on_bad_sample");
        }
    }

    /// Samples without a label; one has it in all its rows or in none.
    std::int64_t count_unscored(std::span<const std::int32_t> labels) {
        const auto rows = static_cast<std::size_t>(task_.rows_per_sample());
        std::int64_t unscored = 0;
        for (std::size_t first = 0; first < labels.size(); first += rows) {
            const auto sample = labels.subspan(first, rows);
            const auto absent = std::ranges::count(sample, evaluation::kPaddingLabel);
            if (absent > 0) ++unscored;
            if (absent == 0 || std::cmp_equal(absent, rows)) continue;
            inspector_.find(labels_name(),
                            "sample {} has {} of {} cells that do not count; must "
                            "have none or all",
                            first / rows, absent, rows);
            break;
        }
        return unscored;
    }

    void find_unscored(const std::string& must) {
        inspector_.find(labels_name(), "has {} samples that do not count; must have {}", unscored_,
                        must);
    }

    /// Its SHA-256 comes to `digest`, that of labels to labels_digest_.
    template <typename T>
    std::optional<storage::NpyArray> read(const std::string& name, const tensor::Shape& shape,
                                          std::string* digest) {
        return inspector_.attempt(name, [&] {
            const std::size_t limit_bytes =
                sizeof(T) * static_cast<std::size_t>(shape.elements()) + kHeaderLimitBytes;
            const auto bytes = inspector_.bytes_of(name, limit_bytes);
            storage::NpyArray array = storage::parse_npy(bytes, name);
            require(array.dtype() == tensor::dtype_of<T>() && array.shape() == shape,
                    ExitCode::data, "has {} {}; must have {} {}", tensor::name_of(array.dtype()),
                    tensor::to_string(array.shape()), tensor::name_of(tensor::dtype_of<T>()),
                    tensor::to_string(shape));
            (digest != nullptr ? *digest : labels_digest_) = storage::sha256_hex(bytes);
            return array;
        });
    }

    void compare(const std::string& name, std::span<const float> stored,
                 const std::vector<float>& computed) {
        const float allowed = tolerance(members_);
        for (std::size_t index = 0; index < stored.size(); ++index) {
            if (agree(stored[index], computed[index], allowed)) continue;
            const auto width = static_cast<std::size_t>(task_.classes);
            inspector_.find(name, "{} {}, class {} is {}; must be {}, as {}{} give it",
                            task_.cells == 0 ? "sample" : "cell", index / width, index % width,
                            stored[index], computed[index], "groups/*/", names_.member);
            return;
        }
    }

    const Claim claim_;
    Inspector& inspector_;
    PredictionFiles names_;
    ProbabilityTask task_;
    std::optional<storage::NpyArray> labels_;
    std::string labels_digest_;
    std::int64_t unscored_ = 0;
    evaluation::Ballot soft_, majority_;
    std::vector<std::string> member_names_;
    int members_ = 0;
    bool is_complete_ = true;
};

}  // namespace

std::unique_ptr<PredictionCheck> make_prediction_check(const Claim& claim, Inspector& inspector) {
    if (detects(claim.config.workload)) return make_detection_check(claim, inspector);
    return std::make_unique<ProbabilityCheck>(claim, inspector);
}

}  // namespace hpcai::verification
