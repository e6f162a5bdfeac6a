// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "sections.hpp"

namespace hpcai::report {
namespace {

/// What every meter of every node has measured, or why it has not.
Markup meters(const EnergyRecord& energy) {
    if (energy.meters.empty()) return {};
    Table rows;
    rows.caption = "Meters, one by one";
    rows.columns = {left("host"), left("meter"), "joules"};
    for (const MeterRecord& one : energy.meters) {
        rows.rows.push_back(row(one.host, one.name, quantity(one.joules, "{:.4g}")));
    }
    return table(rows);
}

/// For a meter beside the machine.
Markup core_phase(const EnergyRecord& energy) {
    if (energy.core_begin_utc.empty()) return {};
    return facts({{"core phase", text(energy.core_begin_utc + " to " + energy.core_end_utc),
                   "for the readings of a meter beside the machine: hpcai500 energy"}});
}

}  // namespace

Markup energy_section(const RunRecord& record) {
    const EnergyRecord& energy = record.energy;
    if (energy.source.empty()) {
        const std::string& why = energy.joules.reason;
        return section(
            "energy", "Energy",
            paragraph(fmt::format("No meter: {}.", why.empty() ? "energy was not measured" : why)) +
                core_phase(energy) + meters(energy));
    }
    return section(
        "energy", "Energy",
        facts({{"meters", text(energy.source)},
               {"energy", quantity(energy.joules, "{:.4g}", "J")},
               {"mean power", quantity(energy.average_watts, "{:.4g}", "W")},
               {"VFLOPS per watt", quantity(record.scores.vflops_per_watt, "{:.3e}", "FLOPS/W")},
               {"method", text(energy.method)},
               {"level", text(energy.level)}}) +
            core_phase(energy) + meters(energy));
}

Markup interfaces(const CommunicationRecord& record) {
    if (record.interfaces.empty()) return {};
    Table rows;
    rows.caption = "Bytes that interfaces counted while training, of all programs on the nodes";
    rows.columns = {left("host"), left("interface"), "sent", "received"};
    for (const InterfaceRecord& one : record.interfaces) {
        rows.rows.push_back(row(one.host, one.name, bytes_quantity(one.sent_bytes),
                                bytes_quantity(one.received_bytes)));
    }
    return facts({{"sent by interfaces", bytes_quantity(record.counted_sent_bytes),
                   "of all nodes, headers and other programs in"}}) +
           table(rows);
}

}  // namespace hpcai::report
