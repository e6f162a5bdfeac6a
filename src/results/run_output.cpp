// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include <nlohmann/json.hpp>

#include <hpcai/base/clock.hpp>
#include <hpcai/results/run_output.hpp>

namespace hpcai::results {
using nlohmann::ordered_json;

std::ostream& text_stream(const config::Config& config, std::ostream& out) {
    return config.run.progress == config::ProgressOutput::json ? std::cerr : out;
}

std::string event_line(const char* event, const std::filesystem::path& directory, int repetition,
                       const ordered_json& values) {
    ordered_json line{{"event", event},
                      {"time_utc", utc_now()},
                      {"directory", directory.string()},
                      {"repetition", repetition > 0 ? ordered_json(repetition) : ordered_json()}};
    line.update(values);
    return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hpcai::results
