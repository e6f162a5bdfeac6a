// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/launch_record.hpp>

#include "fields.hpp"

/// Every key of `launch.json`, once.
namespace hpcai::report {

void describe(auto& fields, Any<LaunchRecord> auto& launch) {
    fields("schema", launch.schema);
    fields("started_utc", launch.started_utc);
    fields("config_sha256", launch.config_sha256);
    fields("samples_sha256", launch.samples_sha256);
    fields("precision", launch.precision);
    fields("topology", launch.topology);
    fields("staging", launch.staging);
    fields("staging_seconds", launch.staging_seconds);
    fields("roofline", launch.roofline);
    fields("determinism", launch.determinism);
    fields("environment", launch.environment);
}

}  // namespace hpcai::report
