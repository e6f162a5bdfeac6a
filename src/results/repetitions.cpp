// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <hpcai/records/json.hpp>
#include <hpcai/report/repetitions.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/repetitions.hpp>
#include <hpcai/results/report_files.hpp>
#include <hpcai/results/run_output.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/repetitions.hpp>

namespace hpcai::results {
namespace {

void print(const std::filesystem::path& folder, const RepetitionsRecord& record,
           const config::Config& config, std::ostream& out) {
    const std::string digest = storage::sha256_hex(storage::bytes_of(records::to_json(record)));
    std::ostream& text = text_stream(config, out);
    text << report::repetitions_table(record, digest) << std::flush;
    if (&text == &out) return;
    out << event_line("repetitions", folder, 0, report::repetitions_json(record, digest))
        << std::flush;
}

}  // namespace

int next_repetition(const std::filesystem::path& folder, int number) {
    while (storage::path_exists(folder / verification::repetition_name(number) /
                                storage::kManifestName))
        ++number;
    return number;
}

RepetitionsRecord list_repetitions(const std::filesystem::path& folder, const std::string& reason) {
    const int next = next_repetition(folder, 1);
    RepetitionsRecord record;
    record.requested = read_config(folder).run.repeat;
    if (next <= record.requested) record.stopped = reason;
    for (int number = 1; number < next; ++number) {
        const auto directory = folder / verification::repetition_name(number);
        const RunRecord run = read_result(directory);
        record.program_version = run.program_version;
        record.name = run.name;
        record.repetitions.push_back(verification::describe_repetition(
            number, run, storage::sha256_hex_of_file(directory / storage::kManifestName)));
    }
    verification::derive_repetitions(record);
    storage::write_file_durably(folder / verification::kRepetitionsName, records::to_json(record));
    return record;
}

RunEnd close_repetition(const context::RunContext& context, bool all_answer, std::ostream& out) {
    const int next = next_repetition(context.folder(), 1);
    const std::string reason = fmt::format(
        "repetition {} {}", next,
        all_answer ? "has not ended"
                   : "needs all ranks, but not every rank answered after the previous run");
    const RepetitionsRecord record = list_repetitions(context.folder(), reason);
    if (all_answer && next <= context.launch.repetitions) return {ExitCode::ok, true};
    print(context.folder(), record, context.config, out);
    return {record.exit_code, false};
}

void record_stop(const std::filesystem::path& folder, const std::string& reason,
                 const config::Config& config, std::ostream& out) noexcept {
    try {
        if (verification::has_repetitions(folder) && next_repetition(folder, 1) > 1)
            print(folder, list_repetitions(folder, reason), config, out);
    } catch (const std::exception& error) {
        std::cerr << "hpcai500: " << error.what() << "\n";
    }
}

}  // namespace hpcai::results
