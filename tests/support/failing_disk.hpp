// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Calls below HPCAI500_DISK_FOLDER that this process has counted.
std::int64_t calls_of_failing_disk();
