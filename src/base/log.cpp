// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/log.hpp>
#include <hpcai/base/text.hpp>

namespace hpcai {
namespace {

spdlog::level::level_enum level_of(Severity severity) {
    constexpr std::array kLevels{spdlog::level::info, spdlog::level::warn, spdlog::level::err};
    return kLevels.at(static_cast<std::size_t>(severity));
}

spdlog::sink_ptr make_sink(const std::string& file_path) {
    if (file_path.empty()) return std::make_shared<spdlog::sinks::stderr_sink_mt>();
    try {
        return std::make_shared<spdlog::sinks::basic_file_sink_mt>(file_path);
    } catch (const spdlog::spdlog_ex& failure) {
        throw Error(ExitCode::usage,
                    fmt::format("cannot write the log file '{}': {}", file_path, failure.what()));
    }
}

class SpdlogLogger final : public Logger {
public:
    SpdlogLogger(const std::string& label, const std::string& file_path)
        : logger_(printable(label), make_sink(file_path)) {
        // Erases the live ProgressLine that a rank may have left on the terminal.
        const bool erases = file_path.empty() && isatty(STDERR_FILENO) == 1;
        logger_.set_formatter(std::make_unique<spdlog::pattern_formatter>(
            std::string(erases ? "\r\x1b[K" : "") + "%Y-%m-%dT%H:%M:%S.%eZ %l [%n] %v",
            spdlog::pattern_time_type::utc));
        logger_.flush_on(spdlog::level::info);
    }

    void write(Severity severity, std::string_view message) override {
        logger_.log(level_of(severity), printable(message));
    }

private:
    spdlog::logger logger_;
};

}  // namespace

std::unique_ptr<Logger> make_logger(const std::string& label, const std::string& file_path) {
    return std::make_unique<SpdlogLogger>(label, file_path);
}

}  // namespace hpcai
