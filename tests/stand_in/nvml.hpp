// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a test may tell the library that stands in for NVML, by its function stand_in_nvml.
struct StandInNvml {
    bool fails_to_start;
    bool has_no_counter;             // of energy, as GPUs before Volta
    unsigned long long millijoules;  // 0: those of 250 W
    unsigned milliwatts;             // 0: 250 W
};

extern "C" StandInNvml* stand_in_nvml();
