// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/speed/roofline.hpp>

#include "rates.hpp"

namespace hpcai::speed {
namespace {

constexpr const char* kKey = "run.roofline";
constexpr double kMeasureSeconds = 2;
constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;

const OperationRate* fastest(const std::vector<OperationRate>& rates, const std::string& precision,
                             bool is_of_model) {
    const OperationRate* best = nullptr;
    for (const OperationRate& rate : rates) {
        const bool is_wanted = is_of_model ? rate.of_model && rate.operation == "convolution"
                                           : !rate.of_model && rate.operation == "linear";
        if (!is_wanted || rate.precision != precision || !rate.flops_per_second.value) continue;
        if (is_mostly_padded(rate.shape)) continue;
        if (best == nullptr || *rate.flops_per_second.value > *best->flops_per_second.value) {
            best = &rate;
        }
    }
    return best;
}

Quantity rate_of(const OperationRate* rate, const std::string& what, const std::string& precision) {
    if (rate != nullptr) return rate->flops_per_second;
    return no_value(fmt::format("no {} was measured in {}", what, precision));
}

CeilingRecord measure_ceiling(const context::RunContext& context,
                              const context::Resources& resources, comm::Communicator& everyone) {
    const Stopwatch watch;
    RateMeter meter(*resources.device, everyone, kMeasureSeconds);
    const int samples =
        context.controller.layout().micro_batch_size(context.config.training.batch_size);
    std::vector<OperationRate> rates;
    if (!resources.precision.int8) {  // with int8, matrix products are in fp32
        rates = measure_operations(meter, large_matrix_products(), resources.precision,
                                   kMeasureSeconds / 2);
    }
    auto operations = operations_of_model(context.config, samples, resources.precision.compute);
    std::erase_if(operations, [](const MeasuredOperation& measured) {
        return is_mostly_padded(shape_text(measured.operation));
    });
    std::ranges::copy(
        measure_operations(meter, operations, resources.precision, kMeasureSeconds / 2),
        std::back_inserter(rates));
    CeilingRecord ceiling = ceiling_from(rates, std::string(name_of(resources.precision)));
    ceiling.source = "measured before training";
    ceiling.measuring_seconds = {watch.seconds(), ""};
    return ceiling;
}

CeilingRecord read_ceiling(const context::RunContext& context, const context::Resources& resources,
                           comm::Communicator& everyone) {
    const std::string& path = context.config.run.roofline;
    std::vector<std::byte> bytes;
    comm::collective_try(everyone, [&] {
        if (everyone.rank() != 0) return;
        bytes =
            config::name_key(kKey, [&] { return storage::read_file_bytes(path, kMaxFileBytes); });
    });
    bytes = comm::broadcast(everyone, std::move(bytes));  // any leader may write the result
    const auto record = config::name_key(
        kKey, [&] { return records::from_json<RooflineRecord>(storage::text_of(bytes), path); });
    CeilingRecord ceiling =
        ceiling_from(record.operations, std::string(name_of(resources.precision)));
    ceiling.source = path;
    ceiling.measuring_seconds = no_value("the ceiling was read from a file");
    return ceiling;
}

}  // namespace

CeilingRecord ceiling_from(const std::vector<OperationRate>& rates, const std::string& precision) {
    const OperationRate* gemm = fastest(rates, precision, false);
    const OperationRate* convolution = fastest(rates, precision, true);
    CeilingRecord ceiling;
    ceiling.precision = precision;
    ceiling.gemm_flops = rate_of(gemm, "large matrix product", precision);
    ceiling.model_convolution_flops = rate_of(convolution, "convolution of the model", precision);
    const OperationRate* best = gemm;
    if (best == nullptr || (convolution != nullptr &&
                            *convolution->flops_per_second.value > *best->flops_per_second.value)) {
        best = convolution;
    }
    ceiling.ceiling_flops = rate_of(best, "ceiling", precision);
    if (best != nullptr) ceiling.ceiling = fmt::format("{}, {}", best->name, best->pass);
    return ceiling;
}

CeilingRecord find_flops_ceiling(const context::RunContext& context,
                                 const context::Resources& resources,
                                 comm::Communicator& everyone) {
    if (context.config.run.roofline == "measure")
        return measure_ceiling(context, resources, everyone);
    if (context.config.run.roofline != "off") return read_ceiling(context, resources, everyone);
    CeilingRecord ceiling;
    ceiling.precision = name_of(resources.precision);
    ceiling.gemm_flops = ceiling.model_convolution_flops = ceiling.ceiling_flops =
        ceiling.measuring_seconds = no_value("run.roofline is off");
    return ceiling;
}

}  // namespace hpcai::speed
