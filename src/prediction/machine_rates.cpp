// SPDX-License-Identifier: Apache-2.0
#include <hpcai/config/keys.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/prediction/estimate.hpp>

#include "estimate_parts.hpp"

namespace hpcai::prediction {
namespace {

/// Adds rates of convolutions, linear layers and memory.
void add_peaks(RooflineRecord& record, double flops_per_second, double bytes_per_second) {
    for (const char* operation : {"convolution", "linear"}) {
        for (const ops::Pass pass :
             {ops::Pass::forward, ops::Pass::weight_gradient, ops::Pass::input_gradient}) {
            record.operations.push_back({.operation = operation,
                                         .precision = record.calibration.precision,
                                         .pass = std::string(ops::name_of(pass)),
                                         .flops_per_second = {flops_per_second, ""}});
        }
    }
    record.bandwidths.push_back({.name = "memory", .bytes_per_second = {bytes_per_second, ""}});
}

}  // namespace

void set_machine_rates(const config::Config& config, EstimateRequest& request) {
    if (request.roofline || (request.flops_per_rank && request.images_per_second)) return;
    const config::Machine& machine = *request.machine;
    const std::string precision = compute_precision(config).name;
    const std::int64_t flops = metrics::FlopsLedger(models::make_model(config))
                                   .training_per_sample(metrics::kOfficialLedger);
    RooflineRecord record;
    record.is_gpu = machine.device_value("gpus_per_node").has_value();
    record.cores = record.threads =
        static_cast<int>(machine.device_value("cores_per_node").value_or(0));
    record.calibration.model = config::value_text(config, "workload.model");
    record.calibration.precision = precision;
    record.calibration.optimizer = config::value_text(config, "training.optimizer");
    record.calibration.training_flops_per_sample = flops;
    std::optional<double> rate = request.flops_per_rank;
    if (request.images_per_second) rate = *request.images_per_second * static_cast<double>(flops);
    record.device = "the given training rate";
    if (rate) {
        record.cores = 0;
    } else {
        rate = machine.device_value(precision + "_training_tflops");
        record.device = fmt::format("the training rate of {} in {}", machine.name, precision);
    }
    const std::optional<double> peak = machine.device_value(precision + "_tflops");
    const std::optional<double> bandwidth = machine.device_value("memory_gb_per_second");
    if (rate) {
        record.calibration.points = {{1, static_cast<double>(flops) / *rate, {std::nullopt, ""}}};
    } else if (peak && bandwidth) {
        add_peaks(record, *peak, *bandwidth);
        record.device = fmt::format("the peak rates of {} in {}", machine.name, precision);
    } else {
        return;
    }
    request.roofline = std::move(record);
    request.flops_per_rank = request.images_per_second = std::nullopt;
}

}  // namespace hpcai::prediction
