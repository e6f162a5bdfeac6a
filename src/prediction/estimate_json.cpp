// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <sstream>

#include <nlohmann/json.hpp>

#include <hpcai/prediction/estimate.hpp>

namespace hpcai::prediction {
namespace {

using nlohmann::ordered_json;

/// Whole numbers without a decimal point, as far as a double holds them exactly.
ordered_json number(double value) {
    constexpr double kMaxExact = 9007199254740992.0;
    if (value != std::floor(value) || std::abs(value) > kMaxExact) return value;
    return static_cast<std::int64_t>(value);
}

void put(ordered_json& object, const std::string& key, const Quantity& quantity) {
    object[key] = quantity.value ? number(*quantity.value) : ordered_json(nullptr);
    if (!quantity.value) object[key + "_reason"] = quantity.reason;
}

ordered_json json_of(const plan::LayoutSummary& summary, const std::string& group_map) {
    ordered_json map = ordered_json::array();
    std::istringstream lines(group_map);
    for (std::string line; std::getline(lines, line);) map.push_back(line);
    return {{"ranks", summary.layout.ranks},
            {"groups", summary.layout.groups},
            {"degree", summary.layout.degree},
            {"nodes", summary.nodes},
            {"ranks_of_fullest_node", summary.ranks_of_fullest_node},
            {"groups_on_one_node", summary.groups_on_one_node},
            {"nodes_of_widest_group", summary.nodes_of_widest_group},
            {"map", map}};
}

ordered_json json_of(const DataEstimate& data) {
    ordered_json object;
    put(object, "samples", data.samples);
    object["source"] = data.source;
    put(object, "samples_per_epoch", data.samples_per_epoch);
    put(object, "steps_per_epoch", data.steps_per_epoch);
    put(object, "steps_per_run", data.steps_per_run);
    return object;
}

ordered_json json_of(const WorkEstimate& work, int groups) {
    ordered_json ledgers = ordered_json::array();
    for (const LedgerRecord& ledger : work.ledgers) {
        ledgers.push_back({{"convention", ledger.convention},
                           {"forward_per_sample", ledger.forward_per_sample},
                           {"training_per_sample", ledger.training_per_sample}});
    }
    const auto scaled = [&](double factor) {
        ordered_json object;
        put(object, "step", {factor * work.step, ""});
        for (const auto& [key, quantity] : {std::pair{"epoch", work.epoch}, {"run", work.run}}) {
            put(object, key, quantity.value ? Quantity{factor * *quantity.value, ""} : quantity);
        }
        return object;
    };
    return {{"convention", work.convention},
            {"ledgers", ledgers},
            {"model_flops", scaled(1)},
            {"ensemble_flops", scaled(groups)}};
}

ordered_json json_of(const PipelineEstimate& pipeline, const plan::Layout& layout) {
    ordered_json stages = ordered_json::array();
    for (const StageEstimate& stage : pipeline.stages) {
        stages.push_back({{"first_node", stage.first_node},
                          {"nodes", stage.nodes},
                          {"flops_per_sample", number(stage.flops)},
                          {"parameters", stage.parameters},
                          {"boundary_bytes", number(stage.boundary_bytes)},
                          {"in_flight", stage.in_flight}});
    }
    return {{"data_degree", layout.data_degree()},
            {"pipeline_degree", layout.stages},
            {"model_degree", layout.parts},
            {"micro_batches", layout.micro_batches},
            {"micro_batch_samples", pipeline.samples},
            {"schedule", pipeline.schedule},
            {"bubble_fraction", pipeline.bubble_fraction},
            {"largest_stage_share", pipeline.largest_share},
            {"message_bytes_per_step", number(pipeline.message_bytes)},
            {"part_bytes_per_step", number(pipeline.part_bytes)},
            {"stages", stages}};
}

ordered_json json_of(const MemoryEstimate& memory, int ranks_of_fullest_node) {
    return {{"precision", memory.precision},
            {"parameter_bytes", number(memory.parameters)},
            {"gradient_bytes", number(memory.gradients)},
            {"optimizer_bytes", number(memory.optimizer_state)},
            {"statistics_bytes", number(memory.statistics)},
            {"working_copy_bytes", number(memory.working_copies)},
            {"activation_bytes", number(memory.activations)},
            {"input_bytes", number(memory.input)},
            {"exchange_bytes", number(memory.exchange)},
            {"program_bytes", number(memory.program)},
            {"evaluation_bytes", number(memory.evaluation)},
            {"total_bytes", number(memory.total())},
            {"fullest_node_bytes", number(memory.total() * ranks_of_fullest_node)}};
}

}  // namespace

std::string to_json(const Estimate& estimate) {
    ordered_json traffic{{"gradient_bytes", number(estimate.traffic.gradient_bytes)},
                         {"algorithm", estimate.traffic.algorithm},
                         {"precision", estimate.traffic.format},
                         {"sent_bytes_per_step", number(estimate.traffic.per_step)}};
    put(traffic, "sent_bytes_per_run", estimate.traffic.per_run);
    put(traffic, "between_nodes_bytes_per_step", estimate.traffic.between_nodes);
    put(traffic, "out_of_node_bytes_per_step", estimate.traffic.out_of_node);
    traffic["statistics_ranks"] = estimate.traffic.statistics_ranks;
    traffic["statistics_bytes_per_step"] = number(estimate.traffic.statistics_bytes);
    ordered_json staging{{"scope", estimate.staging.scope}};
    put(staging, "fullest_node_samples", estimate.staging.fullest_node_samples);
    put(staging, "fullest_node_bytes", estimate.staging.fullest_node_bytes);
    ordered_json time{{"source", estimate.time.source}};
    put(time, "compute_seconds", estimate.time.compute_seconds);
    put(time, "communication_seconds", estimate.time.communication_seconds);
    put(time, "exposed_seconds", estimate.time.exposed_seconds);
    put(time, "step_seconds", estimate.time.step_seconds);
    put(time, "epoch_seconds", estimate.time.epoch_seconds);
    put(time, "run_seconds", estimate.time.run_seconds);
    ordered_json energy;
    put(energy, "joules", estimate.joules);
    const ordered_json document{
        {"schema", "hpcai500-plan/1"},
        {"model", estimate.model},
        {"epochs", estimate.epochs},
        {"batch_size", estimate.batch_size},
        {"layout", json_of(estimate.layout, estimate.group_map)},
        {"data", json_of(estimate.data)},
        {"work", json_of(estimate.work, estimate.layout.layout.groups)},
        {"parallel", json_of(estimate.pipeline, estimate.layout.layout)},
        {"memory_per_rank", json_of(estimate.memory, estimate.layout.ranks_of_fullest_node)},
        {"staging", staging},
        {"traffic_per_rank", traffic},
        {"time", time},
        {"energy", energy},
        {"assumptions", estimate.assumptions}};
    return document.dump(2) + "\n";
}

}  // namespace hpcai::prediction
