// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/units.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/prediction/estimate.hpp>

#include "estimate_parts.hpp"

namespace hpcai::prediction {
namespace {

using metrics::LedgerRow;
using nlohmann::ordered_json;
using ops::Ledger;

struct ModelFlops {
    graph::Graph graph;
    metrics::FlopsLedger ledger;
    ComputePrecision precision;
    std::string model;

    explicit ModelFlops(const config::Config& config)
        : graph(models::make_model(config)),
          ledger(graph),
          precision(compute_precision(config)),
          model(config::value_text(config, "workload.model")) {}

    std::int64_t activation_bytes(std::size_t row) const {
        return value_bytes(graph, graph.nodes()[row].output, precision);
    }
    std::int64_t activation_bytes() const {
        std::int64_t bytes = 0;
        for (std::size_t row = 0; row < ledger.rows().size(); ++row) bytes += activation_bytes(row);
        return bytes;
    }
};

/// Returns the output shape of one sample: "112x112x64".
std::string shape_text(const LedgerRow& row) {
    // A first extent other than 1 is a detector's number of regions, which is printed.
    const bool has_batch = row.output.rank() > 0 && row.output[0] == 1;
    return fmt::format("{}",
                       fmt::join(row.output.begin() + (has_batch ? 1 : 0), row.output.end(), "x"));
}

std::string mflops(std::int64_t flops) {
    return flops == 0 ? "-" : fmt::format("{:.3f}", static_cast<double>(flops) / 1e6);
}

std::string node_line(const std::string& node, const std::string& output,
                      const std::string& parameters, const std::string& bytes) {
    return fmt::format("{:<47}{:>12}{:>12}{:>9}\n", node, output, parameters, bytes);
}

std::string flops_line(const std::array<std::string, 7>& cells) {
    return fmt::format("{:>10} |{:>11}{:>11}{:>11}|{:>11}{:>11}{:>11}\n", cells[0], cells[1],
                       cells[2], cells[3], cells[4], cells[5], cells[6]);
}

std::string lines_of(const LedgerRow& row, const std::string& node, std::int64_t activation_bytes) {
    const ops::Flops& two_mac = row.flops_in(Ledger::two_mac);
    const ops::Flops& aiperf = row.flops_in(Ledger::aiperf);
    return node_line(node, shape_text(row),
                     row.parameters == 0 ? "-" : format_count(row.parameters),
                     format_bytes(activation_bytes)) +
           flops_line({mflops(row.flops_in(Ledger::table3).forward), mflops(two_mac.forward),
                       mflops(two_mac.weight_gradient), mflops(two_mac.input_gradient),
                       mflops(aiperf.forward), mflops(aiperf.weight_gradient),
                       mflops(aiperf.input_gradient)});
}

std::string totals(const ModelFlops& counts) {
    std::string text = fmt::format(
        "\nFLOPs of one sample; the scores use table3\n{:<14}{:>16}{:>16}{:>16}{:>18}\n", "ledger",
        "forward", "weight gradient", "input gradient", "training");
    for (const ops::LedgerName& name : ops::kLedgers) {
        const ops::Flops& flops = counts.ledger.total().flops_in(name.ledger);
        text += fmt::format("{:<14}{:>16}{:>16}{:>16}{:>18}\n", name.name,
                            format_count(flops.forward), format_count(flops.weight_gradient),
                            format_count(flops.input_gradient), format_count(flops.training()));
    }
    return text;
}

ordered_json json_of(const std::array<ops::Flops, ops::kLedgers.size()>& flops) {
    ordered_json ledgers;
    for (std::size_t index = 0; index < flops.size(); ++index) {
        ledgers[std::string(ops::kLedgers[index].name)] = {
            {"forward", flops[index].forward},
            {"weight_gradient", flops[index].weight_gradient},
            {"input_gradient", flops[index].input_gradient},
            {"training", flops[index].training()}};
    }
    return ledgers;
}

ordered_json json_of(const LedgerRow& row, std::int64_t activation_bytes) {
    return {{"node", row.node},
            {"operation", row.operation},
            {"output", std::vector<std::int64_t>(row.output.begin(), row.output.end())},
            {"parameters", row.parameters},
            {"activation_elements", row.activation_elements},
            {"activation_bytes", activation_bytes},
            {"flops", json_of(row.flops)}};
}

}  // namespace

std::string flops_table(const config::Config& config) {
    const ModelFlops counts(config);
    const metrics::FlopsLedger& ledger = counts.ledger;
    std::string text = fmt::format(
        "{}, {} x {} x {} pixels, {} classes\n"
        "outputs in {}{}\n"
        "MFLOPs (1e6) of one sample, by ledger and pass; table3 counts each of the two\n"
        "gradients of an operator as its forward pass\n\n",
        counts.model, config.workload.image_size, image_width(config), config.workload.channels,
        config.workload.classes, counts.precision.activation_format(),
        counts.precision.assumed ? " (training.precision is auto)" : "");
    text += node_line("node operation", "output", "parameters", "bytes");
    text += flops_line({"table3", "two_mac", "weight", "input", "aiperf", "weight", "input"});
    text += flops_line(
        {"forward", "forward", "gradient", "gradient", "forward", "gradient", "gradient"});
    for (std::size_t index = 0; index < ledger.rows().size(); ++index) {
        const LedgerRow& row = ledger.rows()[index];
        text += lines_of(row, row.node + " " + row.operation, counts.activation_bytes(index));
    }
    return text + lines_of(ledger.total(), "total", counts.activation_bytes()) + totals(counts);
}

std::string flops_json(const config::Config& config) {
    const ModelFlops counts(config);
    const metrics::FlopsLedger& ledger = counts.ledger;
    ordered_json nodes = ordered_json::array();
    for (std::size_t row = 0; row < ledger.rows().size(); ++row) {
        nodes.push_back(json_of(ledger.rows()[row], counts.activation_bytes(row)));
    }
    ordered_json total = json_of(ledger.total(), counts.activation_bytes());
    for (const char* key : {"node", "operation", "output"}) total.erase(key);
    const ordered_json document{{"schema", "hpcai500-flops/1"},
                                {"model", counts.model},
                                {"image_size", config.workload.image_size},
                                {"image_width", image_width(config)},
                                {"channels", config.workload.channels},
                                {"classes", config.workload.classes},
                                {"precision", counts.precision.name},
                                {"precision_assumed", counts.precision.assumed},
                                {"convention", "table3"},
                                {"total", total},
                                {"nodes", nodes}};
    return document.dump(2) + "\n";
}

}  // namespace hpcai::prediction
