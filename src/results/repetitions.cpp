// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include <fmt/core.h>

#include <hpcai/records/json.hpp>
#include <hpcai/report/repetitions.hpp>
#include <hpcai/results/repetitions.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/repetitions.hpp>

namespace hpcai::results {
namespace {

/// Returns why there are fewer runs than requested; empty after the last run.
std::string describe_missing_runs(const context::RunContext& context, bool all_answer) {
    if (context.launch.repetition == context.launch.repetitions) return "";
    if (all_answer)
        return fmt::format("repetition {} has not ended", context.launch.repetition + 1);
    return fmt::format(
        "not every rank answered at the end of repetition {}; another run needs all ranks",
        context.launch.repetition);
}

/// Writes repetitions.json. Prints the table to `out` unless `out` is null.
void write(const RepetitionsRecord& record, const std::filesystem::path& folder,
           std::ostream* out) {
    const std::string text = records::to_json(record);
    storage::write_file_durably(folder / verification::kRepetitionsName, text);
    if (out == nullptr) return;
    *out << report::repetitions_table(record, storage::sha256_hex(storage::bytes_of(text)))
         << std::flush;
}

}  // namespace

RunEnd close_repetition(const context::RunContext& context, const RunRecord& run,
                        const std::string& manifest, bool all_answer, std::ostream& out) {
    const auto folder = context.output.parent_path();
    RepetitionsRecord record;
    if (context.launch.repetition > 1) record = verification::read_repetitions(folder);
    record.program_version = run.program_version;
    record.name = run.name;
    record.requested = context.launch.repetitions;
    record.stopped = describe_missing_runs(context, all_answer);
    record.repetitions.push_back(
        verification::describe_repetition(context.launch.repetition, run, manifest));
    verification::derive_repetitions(record);
    const bool has_next_run = all_answer && context.launch.repetition < context.launch.repetitions;
    write(record, folder, has_next_run ? nullptr : &out);
    return {has_next_run ? ExitCode::ok : record.exit_code, has_next_run};
}

void record_stop(const std::filesystem::path& folder, const std::string& reason,
                 std::ostream& out) noexcept {
    try {
        if (!verification::has_repetitions(folder)) return;
        RepetitionsRecord record = verification::read_repetitions(folder);
        record.stopped = reason;
        write(record, folder, &out);
    } catch (const std::exception& error) {
        std::cerr << "hpcai500: " << error.what() << "\n";
    }
}

}  // namespace hpcai::results
