// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hpcai {

/// Catches requests to stop. While the object exists, SIGUSR1 and the first SIGTERM and SIGINT are
/// recorded; a second SIGTERM or SIGINT ends the process. At most one object may exist at a time.
class StopSignals {
public:
    StopSignals();
    ~StopSignals();  // restores the default actions
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    /// Returns SIGUSR1 if it was received since the start of the process, else the first of SIGTERM
    /// and SIGINT that was received, else 0.
    static int received() noexcept;
};

}  // namespace hpcai
