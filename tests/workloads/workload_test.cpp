// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/workloads/workload.hpp>

namespace hpcai::workloads {
namespace {

TEST(Workload, IsThereForEachKind) {
    for (const config::WorkloadRow& row : config::kWorkloads) {
        const Workload& workload = workload_of({.kind = row.value, .model = row.models[0]});
        EXPECT_EQ(workload.task, row.task) << row.name;
        EXPECT_FALSE(workload.files.member.empty()) << row.name;
    }
}

TEST(Workload, HasAReasonForEachNumberOfAMissingQuality) {
    const QualityRecord quality = missing_quality(AveragePrecisionRecord{}, "none voted");
    EXPECT_EQ(metric_name(quality.metric), "coco_ap50");
    const auto& metric = std::get<AveragePrecisionRecord>(quality.metric);
    for (const Quantity& number :
         {quality.ensemble, quality.members_mean, quality.ensemble_gain,
          quality.confidence_interval.low, quality.confidence_interval.high,
          quality.members_interval.low, quality.members_interval.high, metric.ensemble_voc_ap50,
          metric.ensemble_ap10}) {
        EXPECT_EQ(number, no_value("none voted"));
    }
}

}  // namespace
}  // namespace hpcai::workloads
