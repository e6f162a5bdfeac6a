// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/records/record_fields.hpp>

/// The verdict on a run, and who submitted the run. Part of the RunRecord.
namespace hpcai {

enum class Status { valid, invalid, partial, custom };

/// The words of all statuses in JSON; word_of(status) returns one.
constexpr std::array<Word<Status>, 4> words_of(Status /*status*/) {
    return {{{Status::valid, "VALID"},
             {Status::invalid, "INVALID"},
             {Status::partial, "PARTIAL"},
             {Status::custom, "CUSTOM"}}};
}

/// One condition of a rule of docs/RULES.md, with the value of the run.
struct RuleRecord {
    int number = 0;
    std::string what;      // "workload.epochs"
    std::string required;  // "90"
    std::string found;     // "6"
    bool kept = false;     // whether the run satisfies the condition
    HPCAI_RECORD(RuleRecord, number, what, required, found, kept);
};

struct VerdictRecord {
    Status status = Status::invalid;
    std::vector<std::string> reasons;  // why it is not VALID or not rankable, a line each
    ExitCode exit_code = ExitCode::invalid;
    bool rankable = false;
    std::vector<RuleRecord> rules;  // all conditions of the rules of run.level
    HPCAI_RECORD(VerdictRecord, status, reasons, exit_code, rankable, rules);
};

/// The section `submission` of the configuration, and the missing keys that a ranking requires.
struct SubmissionRecord {
    std::string system_name;
    std::string organization;
    std::string contact;
    std::string hardware;                 // layer 1 of the nine layers of docs/RULES.md
    std::string operating_system;         // 2
    std::string communication_libraries;  // 3
    std::string acceleration_libraries;   // 4
    std::string framework;                // 5
    std::string parallel_mode;            // 6
    std::string algorithm;                // 7
    std::string hyper_parameters;         // 8
    std::string problem;                  // 9
    std::vector<std::string> missing;     // empty if the section is complete
    HPCAI_RECORD(SubmissionRecord, system_name, organization, contact, hardware, operating_system,
                 communication_libraries, acceleration_libraries, framework, parallel_mode,
                 algorithm, hyper_parameters, problem, missing);
};

}  // namespace hpcai
