// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/evaluation/box_fusion.hpp>
#include <hpcai/evaluation/coco_json.hpp>
#include <hpcai/evaluation/detection_ensemble.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::workloads {

inline const PredictionFiles kDetectionFiles{"detections.json", "ensemble.json",
                                             "annotations.json"};

/// AP50 of one member's detections.
void judge_detections(const evaluation::DetectionTruth& truth,
                      std::span<const evaluation::Detection> said, GroupResult& result);

/// The quality of an ensemble's detections with its intervals, and each category's.
void judge_fusion(const evaluation::Annotations& truth, std::span<const evaluation::Detection> said,
                  QualityRecord& quality);

/// How `bagging` and `detector` fuse the members' detections.
evaluation::FusionOptions fusion_of(const config::Config& config);

/// The detectors of one rank of those that have all.
struct DetectorMembers {
    std::span<const evaluation::Member> mine;
    int first = 0;  // number of the first of them
    int all = 0;
};

/// quality.members_interval of detectors, at rank 0. Collective.
IntervalRecord detectors_interval(comm::Communicator& ranks, const config::Config& config,
                                  const evaluation::DetectionTruth& truth,
                                  const DetectorMembers& members);

/// A paired bootstrap over the test samples of two ensembles.
QualityComparison compare_detections(const ComparedResults& results);

}  // namespace hpcai::workloads
