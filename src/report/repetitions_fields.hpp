// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/repetitions_record.hpp>

#include "fields.hpp"

/// Every key of `repetitions.json`, once.
namespace hpcai::report {

void describe(auto& fields, Any<RepetitionRecord> auto& one) {
    fields("directory", one.directory);
    fields("seed", one.seed);
    fields("status", one.status);
    fields("exit_code", one.exit_code);
    fields("counted", one.counted);
    fields("flops", one.flops);
    fields("vflops", one.vflops);
    fields("quality", one.quality);
    fields("training_seconds", one.training_seconds);
    fields("manifest", one.manifest);
}

void describe(auto& fields, Any<RepetitionSpreadRecord> auto& spread) {
    fields("median", spread.median);
    fields("minimum", spread.minimum);
    fields("maximum", spread.maximum);
    fields("median_absolute_deviation", spread.median_absolute_deviation);
}

void describe(auto& fields, Any<RepetitionsRecord> auto& record) {
    fields("schema", record.schema);
    fields("program_version", record.program_version);
    fields("name", record.name);
    fields("requested", record.requested);
    fields("stopped", record.stopped);
    fields("exit_code", record.exit_code);
    fields("repetitions", record.repetitions);
    fields("flops", record.flops);
    fields("vflops", record.vflops);
    fields("quality", record.quality);
    fields("training_seconds", record.training_seconds);
}

}  // namespace hpcai::report
