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

/// Returns a line of the table; the first column has `node_width` characters.
std::string line(const std::vector<std::string>& cells, std::size_t node_width) {
    return fmt::format(
        "{:<{}} {:<21} {:>11} {:>11} {:>8} |{:>10} |{:>10}{:>10}{:>10} "
        "|{:>10}{:>10}{:>10}\n",
        cells[0], node_width, cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], cells[7],
        cells[8], cells[9], cells[10], cells[11]);
}

std::string line(const LedgerRow& row, const std::string& node, std::size_t node_width,
                 std::int64_t activation_bytes) {
    const ops::Flops& two_mac = row.flops_in(Ledger::two_mac);
    const ops::Flops& aiperf = row.flops_in(Ledger::aiperf);
    return line(
        {node, row.operation, shape_text(row),
         row.parameters == 0 ? "-" : format_count(row.parameters), format_bytes(activation_bytes),
         mflops(row.flops_in(Ledger::table3).forward), mflops(two_mac.forward),
         mflops(two_mac.weight_gradient), mflops(two_mac.input_gradient), mflops(aiperf.forward),
         mflops(aiperf.weight_gradient), mflops(aiperf.input_gradient)},
        node_width);
}

std::string totals(const ModelFlops& counts) {
    std::string text = fmt::format("\n{:<18}{:>18}{:>18}{:>18}{:>18}\n", "FLOPs of a sample",
                                   "forward", "weight gradient", "input gradient", "training");
    for (const ops::LedgerName& name : ops::kLedgers) {
        const ops::Flops& flops = counts.ledger.total().flops_in(name.ledger);
        const bool official = name.ledger == metrics::kOfficialLedger;
        text += fmt::format("{:<18}{:>18}{:>18}{:>18}{:>18}\n",
                            fmt::format("{}{}", name.name, official ? " (official)" : ""),
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
    std::size_t width = 21;
    for (const LedgerRow& row : ledger.rows()) width = std::max(width, row.node.size());
    std::string text = fmt::format(
        "{}, {} x {} x {} pixels, {} classes: one sample, MFLOPs (1e6) by ledger and pass\n"
        "activations in {}{}; table3 counts each of the two gradients of an operator\n"
        "as its forward pass\n\n",
        counts.model, config.workload.image_size, image_width(config), config.workload.channels,
        config.workload.classes, counts.precision.activation_format(),
        counts.precision.assumed ? " (training.precision is auto)" : "");
    text += line(
        {"", "", "", "", "", "table3", "two_mac", "weight", "input", "aiperf", "weight", "input"},
        width);
    text += line({"node", "operation", "output", "parameters", "output", "forward", "forward",
                  "gradient", "gradient", "forward", "gradient", "gradient"},
                 width);
    for (std::size_t row = 0; row < ledger.rows().size(); ++row) {
        text +=
            line(ledger.rows()[row], ledger.rows()[row].node, width, counts.activation_bytes(row));
    }
    return text + line(ledger.total(), "total", width, counts.activation_bytes()) + totals(counts);
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
