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

    /// The number of the last that came since the program began; 0: none has.
    static int received() noexcept;
};

}  // namespace hpcai
