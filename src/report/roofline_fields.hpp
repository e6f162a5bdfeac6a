// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <type_traits>

#include <hpcai/base/roofline_record.hpp>

/// Every key of a roofline file, once, and of what a result has of it.
namespace hpcai::report {

template <typename T, typename Record>
concept Any = std::same_as<std::remove_const_t<T>, Record>;  // const to write, mutable to read

void describe(auto& fields, Any<OperationRate> auto& rate) {
    fields("name", rate.name);
    fields("operation", rate.operation);
    fields("precision", rate.precision);
    fields("pass", rate.pass);
    fields("shape", rate.shape);
    fields("of_model", rate.of_model);
    fields("nodes", rate.nodes);
    fields("flops", rate.flops);
    fields("bytes", rate.bytes);
    fields("seconds", rate.seconds);
    fields("flops_per_second", rate.flops_per_second);
}

void describe(auto& fields, Any<BandwidthRate> auto& rate) {
    fields("name", rate.name);
    fields("method", rate.method);
    fields("bytes", rate.bytes);
    fields("seconds", rate.seconds);
    fields("bytes_per_second", rate.bytes_per_second);
}

void describe(auto& fields, Any<AllReduceRate> auto& rate) {
    fields("scope", rate.scope);
    fields("ranks", rate.ranks);
    fields("bytes", rate.bytes);
    fields("seconds", rate.seconds);
    fields("bytes_per_second", rate.bytes_per_second);
}

void describe(auto& fields, Any<AllReduceFit> auto& fit) {
    fields("scope", fit.scope);
    fields("backend", fit.backend);
    fields("ranks", fit.ranks);
    fields("latency_seconds", fit.latency_seconds);
    fields("bytes_per_second", fit.bytes_per_second);
}

void describe(auto& fields, Any<CalibrationPoint> auto& point) {
    fields("samples", point.samples);
    fields("step_seconds", point.step_seconds);
    fields("summed_step_seconds", point.summed_step_seconds);
}

void describe(auto& fields, Any<CalibrationRecord> auto& calibration) {
    fields("model", calibration.model);
    fields("precision", calibration.precision);
    fields("optimizer", calibration.optimizer);
    fields("image_size", calibration.image_size);
    fields("image_width", calibration.image_width);
    fields("training_flops_per_sample", calibration.training_flops_per_sample);
    fields("gradient_bytes", calibration.gradient_bytes);
    fields("sums", calibration.sums);
    fields("points", calibration.points);
    fields("reason", calibration.reason);
}

void describe(auto& fields, Any<RooflineRecord> auto& record) {
    fields("schema", record.schema);
    fields("program_version", record.program_version);
    fields("measured_utc", record.measured_utc);
    fields("device", record.device);
    fields("is_gpu", record.is_gpu);
    fields("ranks", record.ranks);
    fields("nodes", record.nodes);
    fields("ranks_of_fullest_node", record.ranks_of_fullest_node);
    fields("threads", record.threads);
    fields("cores", record.cores);
    fields("measured_seconds", record.measured_seconds);
    fields("operations", record.operations);
    fields("bandwidths", record.bandwidths);
    fields("all_reduce", record.all_reduce);
    fields("all_reduce_fits", record.all_reduce_fits);
    fields("calibration", record.calibration);
}

void describe(auto& fields, Any<CeilingRecord> auto& ceiling) {
    fields("source", ceiling.source);
    fields("precision", ceiling.precision);
    fields("gemm_flops", ceiling.gemm_flops);
    fields("model_convolution_flops", ceiling.model_convolution_flops);
    fields("ceiling_flops", ceiling.ceiling_flops);
    fields("ceiling", ceiling.ceiling);
    fields("measuring_seconds", ceiling.measuring_seconds);
}

void describe(auto& fields, Any<UtilizationRecord> auto& utilization) {
    fields("flops_per_rank", utilization.flops_per_rank);
    fields("fraction", utilization.fraction);
}

}  // namespace hpcai::report
