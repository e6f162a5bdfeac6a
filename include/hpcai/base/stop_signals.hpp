// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hpcai {

/// While one is there, SIGUSR1 and the first SIGTERM do not end the process but are remembered;
/// behind it they end it again. One at a time.
class StopSignals {
public:
    StopSignals();
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    /// SIGUSR1 where that has come since the program began, else SIGTERM where that has, else 0.
    static int received() noexcept;
};

}  // namespace hpcai
