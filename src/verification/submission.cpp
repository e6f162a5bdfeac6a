// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/verification/submission.hpp>

namespace hpcai::verification {
namespace {

struct SubmissionRow {
    const char* key;
    std::string config::SubmissionConfig::*said;
    std::string SubmissionRecord::*recorded;
    bool is_needed = true;
};

using From = config::SubmissionConfig;
using To = SubmissionRecord;

constexpr std::array kSubmissionRows{
    SubmissionRow{"system_name", &From::system_name, &To::system_name},
    SubmissionRow{"organization", &From::organization, &To::organization},
    SubmissionRow{"contact", &From::contact, &To::contact, false},
    SubmissionRow{"hardware", &From::hardware, &To::hardware},
    SubmissionRow{"operating_system", &From::operating_system, &To::operating_system},
    SubmissionRow{"communication_libraries", &From::communication_libraries,
                  &To::communication_libraries},
    SubmissionRow{"acceleration_libraries", &From::acceleration_libraries,
                  &To::acceleration_libraries},
    SubmissionRow{"framework", &From::framework, &To::framework},
    SubmissionRow{"parallel_mode", &From::parallel_mode, &To::parallel_mode},
    SubmissionRow{"algorithm", &From::algorithm, &To::algorithm},
    SubmissionRow{"hyper_parameters", &From::hyper_parameters, &To::hyper_parameters},
    SubmissionRow{"problem", &From::problem, &To::problem},
};

}  // namespace

SubmissionRecord describe_submission(const config::Config& config) {
    SubmissionRecord record;
    for (const SubmissionRow& row : kSubmissionRows) {
        const std::string& said = config.submission.*row.said;
        record.*row.recorded = said;
        const bool is_blank = said.find_first_not_of(" \t\r\n") == std::string::npos;
        if (row.is_needed && is_blank) record.missing.push_back(row.key);
    }
    return record;
}

std::string what_submission_lacks(const config::Config& config) {
    if (config.run.level == config::Level::custom) return "";
    const std::vector<std::string> missing = describe_submission(config).missing;
    if (missing.empty()) return "";
    return fmt::format("not rankable: the section submission lacks {}", fmt::join(missing, ", "));
}

}  // namespace hpcai::verification
