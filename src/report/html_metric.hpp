// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/records/metric_record.hpp>

#include "markup.hpp"

/// The parts of the page that depend on the metric.
namespace hpcai::report {

/// A quality by the same metric of what else than the ensemble's vote predicts.
struct OtherQuality {
    std::string name;
    Quantity quality;
};

std::vector<OtherQuality> other_qualities(const MetricRecord& metric);

/// Returns the numbers that the metric has besides qualities of the ensemble.
std::vector<Fact> metric_facts(const MetricRecord& metric);

}  // namespace hpcai::report
