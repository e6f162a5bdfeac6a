// SPDX-License-Identifier: Apache-2.0
#include <ostream>

#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/meters/external_readings.hpp>
#include <hpcai/meters/utc.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/results/report_files.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadingsLimitBytes = std::size_t{1} << 28;  // of the CSV file
constexpr double kDaySeconds = 86400;
constexpr const char* kMeterLevel =
    "depends on the meter: the result may meet Level 1 or more of the methodology of the Energy "
    "Efficient HPC Working Group if the meter reads all nodes, including power supplies, and the "
    "network, at least once a second during the whole core phase";

struct EnergyOptions {
    std::string directory;
    std::string readings;
    meters::IntegrationSettings settings;
    bool json = false;
};

struct MeteredResult {
    RunRecord record;
    std::string manifest;
    meters::ExternalReadings readings;
    meters::Phase core;
    meters::MeteredEnergy energy;
    Quantity vflops_per_watt;
};

double core_time(const EnergyOptions& options, const char* key, const std::string& text) {
    const auto seconds = meters::parse_utc(text);
    require(
        seconds.has_value(), ExitCode::data,
        "{}: result.json: energy.{} is \"{}\"; expected a UTC time; a run records it only if "
        "groups finished, none was resumed, the hosts' clocks agree and run.evaluate_epochs is 0",
        printable(options.directory), key, printable(text));
    return *seconds;
}

MeteredResult read_metered_result(const EnergyOptions& options) {
    const fs::path directory = options.directory;
    MeteredResult result{.record = results::read_result(directory)};
    require(storage::matches_manifest(directory / "result.json"), ExitCode::data,
            "{}: has no {} that lists result.json; expected a complete result",
            printable(options.directory), storage::kManifestName);
    result.manifest = storage::sha256_hex_of_file(directory / storage::kManifestName);
    const EnergyRecord& own = result.record.energy;
    result.core = {core_time(options, "core_begin_utc", own.core_begin_utc),
                   core_time(options, "core_end_utc", own.core_end_utc)};
    const std::string readings = storage::read_file_text(options.readings, kReadingsLimitBytes);
    result.readings = meters::parse_readings(readings, options.readings);
    result.energy = meters::integrate(result.readings, result.core, options.settings);
    const Quantity& vflops = result.record.scores.vflops;
    const double watts = result.energy.average_watts;
    result.vflops_per_watt = !vflops.value ? vflops
                             : watts > 0
                                 ? Quantity{*vflops.value / watts, ""}
                                 : Quantity{std::nullopt, "the readings in the core phase are 0 W"};
    return result;
}

std::string number_or_reason(const Quantity& quantity, const char* unit) {
    if (quantity.value) return fmt::format("{:.4g} {}", *quantity.value, unit);
    return "n/a: " + printable(quantity.reason);
}

std::string energy_text(const EnergyOptions& options, const MeteredResult& result) {
    const EnergyRecord& own = result.record.energy;
    const meters::MeteredEnergy& energy = result.energy;
    std::string text;
    const auto line = [&](const char* name, const std::string& value) {
        text += fmt::format("{:<16}: {}\n", name, value);
    };
    line("result", report::result_line(result.record, result.manifest));
    line("core phase", fmt::format("{} to {}, {:.3f} s", own.core_begin_utc, own.core_end_utc,
                                   result.core.end_utc_seconds - result.core.begin_utc_seconds));
    line("readings",
         fmt::format("{} of {} in {}, at most {:.3f} s apart; clock offset {} s", energy.readings,
                     result.readings.is_counter ? "joules" : "watts", result.readings.file,
                     energy.longest_gap_seconds, options.settings.clock_offset_seconds));
    line("energy", fmt::format("{:.4g} J", energy.joules));
    line("mean power", fmt::format("{:.4g} W", energy.average_watts));
    line("VFLOPS per watt", number_or_reason(result.vflops_per_watt, "FLOPS/W"));
    line("run's meters", own.source.empty() ? "none"
                                            : number_or_reason(own.average_watts, "W") + " by " +
                                                  printable(own.source));
    line("level", kMeterLevel);
    return text;
}

nlohmann::ordered_json energy_json(const EnergyOptions& options, const MeteredResult& result) {
    const EnergyRecord& own = result.record.energy;
    const meters::MeteredEnergy& energy = result.energy;
    nlohmann::ordered_json json{{"schema", "hpcai500-energy/1"},
                                {"manifest", result.manifest},
                                {"core_begin_utc", own.core_begin_utc},
                                {"core_end_utc", own.core_end_utc},
                                {"readings_file", result.readings.file},
                                {"readings", energy.readings},
                                {"longest_gap_seconds", energy.longest_gap_seconds},
                                {"clock_offset_seconds", options.settings.clock_offset_seconds},
                                {"joules", energy.joules},
                                {"average_watts", energy.average_watts}};
    const auto add = [&json](const std::string& key, const Quantity& quantity) {
        json[key] = records::number_or_null(quantity);
        if (!quantity.value) json[key + "_reason"] = quantity.reason;
    };
    add("vflops_per_watt", result.vflops_per_watt);
    add("own_average_watts", own.average_watts);
    json["level"] = kMeterLevel;
    return json;
}

ExitCode energy(const EnergyOptions& options, const Context& context) {
    const MeteredResult result = read_metered_result(options);
    context.out << (options.json ? json_text(energy_json(options, result))
                                 : energy_text(options, result));
    return ExitCode::ok;
}

}  // namespace

void add_energy_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"energy",
         "Compute the energy of a result's core phase from the CSV file of an external meter "
         "(time,watts or time,joules).",
         {"hpcai500 energy results/run-17 --readings rack7.csv",
          "hpcai500 energy results/run-17 --readings pdu.csv --clock-offset -1.5 --json"}},
        energy);
    command.add_argument("DIR", options.directory, "result directory of a run");
    command.add_text("--readings", options.readings, "FILE",
                     "CSV file: UTC as 2026-11-05T14:03:09.25Z or seconds since 1970, and watts or "
                     "a counter of joules",
                     Presence::required);
    command.add_number("--clock-offset", options.settings.clock_offset_seconds,
                       between(-kDaySeconds, kDaySeconds),
                       "seconds to add to the meter's times; default: 0");
    command.add_number("--longest-gap", options.settings.longest_gap_seconds,
                       between(1e-3, kDaySeconds),
                       "maximum seconds between two readings; default: 10");
    add_json_flag(command, options.json);
}

}  // namespace hpcai::cli
