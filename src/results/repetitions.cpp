// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <system_error>

#include <fmt/core.h>

#include <hpcai/records/json.hpp>
#include <hpcai/report/repetitions.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/repetitions.hpp>
#include <hpcai/results/report_files.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/repetitions.hpp>

namespace hpcai::results {
int next_repetition(const std::filesystem::path& folder, int number) {
    std::error_code error;
    while (std::filesystem::exists(
        folder / verification::repetition_name(number) / storage::kManifestName, error))
        ++number;
    return number;
}

ExitCode list_repetitions(const std::filesystem::path& folder, const std::string& reason,
                          std::ostream* out) {
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
    const std::string text = records::to_json(record);
    storage::write_file_durably(folder / verification::kRepetitionsName, text);
    if (out == nullptr) return record.exit_code;
    *out << report::repetitions_table(record, storage::sha256_hex(storage::bytes_of(text)))
         << std::flush;
    return record.exit_code;
}

RunEnd close_repetition(const context::RunContext& context, bool all_answer, std::ostream& out) {
    const int next = next_repetition(context.folder(), 1);
    const bool has_next_run = all_answer && next <= context.launch.repetitions;
    const std::string reason = fmt::format(
        "repetition {} {}", next,
        all_answer ? "has not ended"
                   : "needs all ranks, but not every rank answered after the previous run");
    const ExitCode code = list_repetitions(context.folder(), reason, has_next_run ? nullptr : &out);
    return {has_next_run ? ExitCode::ok : code, has_next_run};
}

void record_stop(const std::filesystem::path& folder, const std::string& reason,
                 std::ostream& out) noexcept {
    try {
        if (verification::has_repetitions(folder) && next_repetition(folder, 1) > 1)
            list_repetitions(folder, reason, &out);
    } catch (const std::exception& error) {
        std::cerr << "hpcai500: " << error.what() << "\n";
    }
}

}  // namespace hpcai::results
