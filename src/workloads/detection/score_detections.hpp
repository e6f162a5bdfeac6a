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

/// Computes the AP50 of one member's detections.
void score_detections(const evaluation::DetectionTruth& truth,
                      std::span<const evaluation::Detection> detections, GroupResult& result);

/// Computes the quality of an ensemble's detections, its interval and each category's quality.
void score_fusion(const evaluation::Annotations& truth,
                  std::span<const evaluation::Detection> detections, QualityRecord& quality);

/// Returns the fusion options of the configuration's `bagging` and `detector` sections.
evaluation::FusionOptions fusion_options(const config::Config& config);

struct DetectorMembers {
    std::span<const evaluation::Member> local;
    int first = 0;  // index of local.front() among all detectors
    int total = 0;  // detectors of all ranks
};

/// Returns quality.members_interval on rank 0. Collective.
IntervalRecord detectors_interval(comm::Communicator& ranks, const config::Config& config,
                                  const evaluation::DetectionTruth& truth,
                                  const DetectorMembers& members);

/// Compares two ensembles by a paired bootstrap over the test samples.
QualityComparison compare_detections(const ComparedResults& results);

}  // namespace hpcai::workloads
