// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/report/html.hpp>

#include "example_record.hpp"
#include "page_check.hpp"

/// Returns the page of an example, for tests.
namespace hpcai::report {

inline std::vector<StepRecord> example_steps(int steps, double seconds) {
    std::vector<StepRecord> result;
    for (int step = 0; step < steps; ++step) {
        const double end = seconds * (step + 1) / steps;
        const double loss = 2.0 / (1 + step);
        result.push_back(
            {step, step * 2 / steps, 32, end, 0.1, loss, {0.25, 0.5, 1.0, 0.125, 0.0625, 0.0625}});
    }
    return result;
}

inline PageContent example_content(const RunRecord& record) {
    return {record,
            {example_steps(6, 16), example_steps(6, 12)},
            {},
            {{"conv1", "convolution", "32x32x64", 9408, 900'000'000, 2'700'000'000},
             {"fc", "linear", "10", 20490, 100'000'000, 300'000'000}}};
}

inline bool has(const ReadPage& page, const std::string& words) {
    return squeezed(page.text).find(words) != std::string::npos;
}

}  // namespace hpcai::report
