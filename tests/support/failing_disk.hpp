// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Returns the number of calls below HPCAI500_DISK_FOLDER in this process.
std::int64_t calls_of_failing_disk();
