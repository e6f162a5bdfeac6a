// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/units.hpp>
#include <hpcai/report/html.hpp>

#include "markup.hpp"

namespace hpcai::report {
namespace {

Markup meters(const EnergyRecord& energy) {
    if (energy.meters.empty()) return {};
    Table rows{.caption = "Energy by meter", .columns = {left("host"), left("meter"), "joules"}};
    for (const MeterRecord& one : energy.meters) {
        rows.rows.push_back(row(one.host, one.name, quantity(one.joules, "{:.4g}")));
    }
    return table(rows);
}

/// The period that an external meter must cover.
Markup core_phase(const EnergyRecord& energy) {
    if (energy.core_begin_utc.empty()) return {};
    return facts({{"core phase", text(energy.core_begin_utc + " to " + energy.core_end_utc),
                   "hpcai500 energy adds the readings of an external meter"}});
}

Markup interfaces(const CommunicationRecord& record) {
    if (record.interfaces.empty()) return {};
    Table rows{
        .caption = "Bytes counted by interfaces during training, of all programs on the nodes",
        .columns = {left("host"), left("interface"), "sent", "received"}};
    for (const InterfaceRecord& one : record.interfaces) {
        rows.rows.push_back(row(one.host, one.name, bytes_quantity(one.sent_bytes),
                                bytes_quantity(one.received_bytes)));
    }
    return facts({{"sent by interfaces", bytes_quantity(record.counted_sent_bytes),
                   "by all nodes, including packet headers and other programs"}}) +
           table(rows);
}

Markup all_reduces(const CommunicationRecord& record) {
    return facts(
        {{"gradient all-reduces",
          text(record.backend == "none" ? "none"
                                        : fmt::format("{} in {}, by {}", record.algorithm,
                                                      record.precision, record.backend))},
         {"payload per step", text(bytes_text(record.gradient_bytes)),
          fmt::format("of one rank, in {}", counted(record.buckets, "bucket"))},
         {"sent per step", bytes_quantity(record.sent_bytes_per_step),
          "by the rank that sends the most"},
         {"between nodes, per step", bytes_quantity(record.between_nodes_bytes_per_step)},
         {"sent by a node", bytes_quantity(record.out_of_node_bytes_per_step),
          "by all ranks of a group on the node"},
         {"exposed", quantity(record.exposed_seconds, "{:.2f}", "s"), "maximum over all groups"},
         {"exposed, per step", quantity(record.exposed_seconds_per_step, "{:.4f}", "s")},
         {"all-reduce bandwidth", bytes_quantity(record.bandwidth_bytes_per_second),
          "per second"}});
}

Markup batch_norm_statistics(const CommunicationRecord& record) {
    if (record.statistics_ranks <= 1) return {};
    return facts(
        {{"BatchNorm statistics", text(fmt::format("over {} ranks", record.statistics_ranks))},
         {"all-reduces per step", text(format_count(record.statistics_sums_per_step)),
          fmt::format("{} of one rank in total", bytes_text(record.statistics_bytes_per_step))},
         {"time of all-reduces", quantity(record.statistics_seconds, "{:.2f}", "s")}});
}

Markup parallelism(const ParallelRecord& record) {
    if (record.pipeline_degree <= 1 && record.model_degree <= 1) return {};
    return facts(
        {{"parallelism",
          text(fmt::format("{}: {}, {}, {}", record.mode, counted(record.data_degree, "replica"),
                           counted(record.pipeline_degree, "stage"),
                           counted(record.model_degree, "shard")))},
         {"micro-batches", text(std::to_string(record.micro_batches)), record.schedule},
         {"bubble", quantity(record.bubble_fraction, "{:.3f}"), "share of a step, computed"},
         {"between stages, per step", text(bytes_text(record.message_bytes_per_step))},
         {"wait for stages", quantity(record.message_wait_seconds, "{:.2f}", "s")},
         {"between shards, per step", text(bytes_text(record.shard_bytes_per_step))},
         {"wait for shards", quantity(record.shard_wait_seconds, "{:.2f}", "s")}});
}

Markup ledgers(const FlopsRecord& flops) {
    Table rows{.caption = "FLOPs of one sample by ledger",
               .columns = {left("ledger"), "forward", "training"}};
    for (const LedgerRecord& ledger : flops.ledgers) {
        const bool is_official = ledger.convention == flops.convention;
        rows.rows.push_back(row(ledger.convention + (is_official ? " (scores)" : ""),
                                format_count(ledger.forward_per_sample),
                                format_count(ledger.training_per_sample)));
    }
    return table(rows);
}

Markup layers(const PageContent& content) {
    const std::vector<LayerRecord>& layers = content.layers;
    if (layers.empty()) return {};
    Table rows{.columns = {left("node"), left("operation"), left("output"), "parameters", "forward",
                           "training", "share, %"},
               .unfolded = layers.size()};
    std::int64_t total = 0;
    for (const LayerRecord& layer : layers) total += layer.training_flops;
    for (const LayerRecord& layer : layers) {
        const double share = 100.0 * static_cast<double>(layer.training_flops) /
                             static_cast<double>(std::max<std::int64_t>(total, 1));
        rows.rows.push_back(
            row(layer.node, layer.operation, layer.output,
                layer.parameters == 0 ? "\xE2\x80\x93" : format_count(layer.parameters),
                format_count(layer.forward_flops), format_count(layer.training_flops),
                fmt::format("{:.2f}", share)));
    }
    return folded(fmt::format("FLOPs of one sample in each of {}, counted by {}",
                              counted(std::ssize(layers), "layer"),
                              ledger_text(content.record.flops.convention)),
                  table(rows));
}

Markup staging(const StagingRecord& record) {
    if (record.scope == "none") return {};
    return facts({{"staged", text(record.scope), counted(record.files, "file")},
                  {"copied", text(bytes_text(record.copied_bytes))},
                  {"reused", text(bytes_text(record.reused_bytes))},
                  {"fullest node", text(bytes_text(record.fullest_node_bytes))},
                  {"not staged", text(format_count(record.left_files)), "files"}});
}

Markup environment(const RunRecord& record) {
    std::vector<Fact> rows;
    for (const auto& [name, value] : record.environment)
        rows.push_back({name == "launcher" ? "options of mpirun" : name, text(value)});
    for (const InvocationRecord& one : record.invocations)
        rows.push_back({"program at " + one.started_utc, text(one.command_line),
                        one.binary_sha256 + " on " + one.host});
    const DeterminismRecord& determinism = record.determinism;
    rows.push_back({"determinism", text(determinism.guarantee), determinism.conditions});
    return section("environment", "Environment", facts(rows) + staging(record.staging));
}

Markup submission(const SubmissionRecord& record) {
    const std::array<std::pair<const char*, const std::string*>, 12> fields{
        {{"system", &record.system_name},
         {"organization", &record.organization},
         {"contact", &record.contact},
         {"1 hardware", &record.hardware},
         {"2 operating system", &record.operating_system},
         {"3 communication libraries", &record.communication_libraries},
         {"4 acceleration libraries", &record.acceleration_libraries},
         {"5 framework", &record.framework},
         {"6 parallel mode", &record.parallel_mode},
         {"7 algorithm", &record.algorithm},
         {"8 hyper-parameters", &record.hyper_parameters},
         {"9 problem", &record.problem}}};
    std::vector<Fact> rows;
    for (const auto& [name, value] : fields) {
        if (!value->empty()) rows.push_back({name, text(*value)});
    }
    if (rows.empty()) return {};
    Markup content = facts(rows);
    if (!record.missing.empty())
        content += note(fmt::format("A ranking also needs {}.", fmt::join(record.missing, ", ")));
    return section("submission", "Submission", content);
}

Markup parameters(const RunRecord& record) {
    Table rows{.caption = "Parameters",
               .columns = {left("key"), left("value"), left("meaning")},
               .unfolded = record.parameters.size()};
    for (const ParameterRecord& one : record.parameters) {
        rows.rows.push_back(row(element("code", {text(one.key)}), one.value, one.meaning));
    }
    return section(
        "parameters", "Parameters",
        folded(fmt::format("{} parameters", record.parameters.size()), table(rows)) +
            folded("The whole configuration",
                   element(R"(pre tabindex="0")", {element("code", {text(record.config.text)})})));
}

}  // namespace

Markup communication_section(const RunRecord& record) {
    return section("communication", "Communication",
                   all_reduces(record.communication) + batch_norm_statistics(record.communication) +
                       parallelism(record.parallel) + interfaces(record.communication));
}

Markup energy_section(const RunRecord& record) {
    const EnergyRecord& energy = record.energy;
    const std::string& reason = energy.joules.reason;
    Markup measured = paragraph(
        fmt::format("No meter: {}.", reason.empty() ? "energy was not measured" : reason));
    if (!energy.source.empty()) {
        measured = facts(
            {{"meters", text(energy.source)},
             {"energy", quantity(energy.joules, "{:.4g}", "J")},
             {"mean power", quantity(energy.average_watts, "{:.4g}", "W")},
             {"VFLOPS per watt", quantity(record.scores.vflops_per_watt, "{:.3e}", "FLOPS/W")},
             {"method", text(energy.method)},
             {"level", text(energy.level)}});
    }
    return section("energy", "Energy", measured + core_phase(energy) + meters(energy));
}

Markup flops_section(const PageContent& content) {
    return section("flops", "Work", ledgers(content.record.flops) + layers(content));
}

Markup settings_sections(const RunRecord& record) {
    return submission(record.submission) + environment(record) + parameters(record);
}

}  // namespace hpcai::report
