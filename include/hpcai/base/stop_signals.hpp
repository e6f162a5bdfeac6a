// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hpcai {

/// During its lifetime SIGUSR1, the first SIGTERM and the first SIGINT do not end the process but
/// are stored. Afterwards they end it again. Only one object may exist at a time.
class StopSignals {
public:
    StopSignals();
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    /// Returns SIGUSR1 if it was received since the start of the process, else the first of SIGTERM
    /// and SIGINT that was received, else 0.
    static int received() noexcept;
};

}  // namespace hpcai
