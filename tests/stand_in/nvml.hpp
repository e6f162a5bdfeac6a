// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

/// Settings of the emulated NVML, which tests change by its function stand_in_nvml.
struct StandInNvml {
    bool fails_to_start;
    bool has_no_counter;             // has no energy counter, like GPUs before Volta
    unsigned long long millijoules;  // 0: the energy at 250 W
    unsigned milliwatts;             // 0: 250 W
    bool tells_no_health;            // reports neither ECC errors nor Xids
    unsigned long long clock_event_reasons;
    unsigned long long corrected_ecc_errors, uncorrected_ecc_errors;
    int xids_to_come;  // with numbers up to 79
    std::atomic<int> open_event_sets;
    std::atomic<int> looks;          // queries of the reasons for clock throttling
    std::atomic<int> hangs_at_look;  // first query that hangs, until this is 0 again; 0: none
};

extern "C" StandInNvml* stand_in_nvml();
