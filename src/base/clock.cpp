// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>

#include <hpcai/base/clock.hpp>

namespace hpcai {

using std::chrono::floor;
using std::chrono::seconds;
using std::chrono::system_clock;

std::string utc_iso8601(system_clock::time_point when) {
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z",
                       fmt::gmtime(system_clock::to_time_t(floor<seconds>(when))));
}

std::string utc_now() {
    return utc_iso8601(system_clock::now());
}

std::string utc_now_compact() {
    return fmt::format("{:%Y%m%dT%H%M%S}Z",
                       fmt::gmtime(system_clock::to_time_t(system_clock::now())));
}

}  // namespace hpcai
