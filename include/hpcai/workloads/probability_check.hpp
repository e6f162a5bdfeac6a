// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hpcai/evaluation/ballot.hpp>
#include <hpcai/workloads/probabilities.hpp>

namespace hpcai::workloads {

/// Checks stored labels, the members' probabilities and the vote.
class ProbabilityCheck : public PredictionCheck {
public:
    ProbabilityCheck(const CheckedResult& result, ProbabilityTask task);

    bool add_member(int group, GroupResult& result) override;
    void finish(QualityRecord& quality) override;

protected:
    /// Adds task-specific values to `quality` from the labels and the stored metric.
    virtual void add_quality(std::span<const std::int32_t>, const MetricRecord&, QualityRecord&) {}

    static std::string labels_name() { return "evaluation/" + kProbabilityFiles.labels; }
    /// The files of the members that add_member() scored.
    const std::vector<std::string>& member_names() const { return member_names_; }
    /// Appends rows [first, first + count) of a member's file to `rows`. The task must have one row
    /// per sample, and add_member() must have accepted the file.
    void append_rows(const std::string& name, std::size_t first, std::size_t count,
                     std::vector<float>& rows) const;

    const CheckedResult result_;

private:
    const char* row_name() const { return task_.cells == 0 ? "sample" : "cell"; }
    bool check_rows(const std::string& name, std::span<const float> values);
    void check_folders(const std::string& names);
    void count_unscored();
    void report_unscored(const std::string& limit);
    template <typename T>
    std::optional<storage::NpyArray> read(const std::string& name, const tensor::Shape& shape,
                                          std::string& digest);
    void compare_probabilities(const std::string& name, std::span<const float> stored,
                               const std::vector<float>& computed);

    const ProbabilityTask task_;
    std::optional<storage::NpyArray> labels_;  // none: missing or damaged
    std::string labels_digest_;
    std::int64_t unscored_ = 0;  // samples that lack labels
    evaluation::Ballot soft_, majority_;
    std::vector<std::string> member_names_;
    bool is_complete_ = true;  // all members were scored
};

}  // namespace hpcai::workloads
