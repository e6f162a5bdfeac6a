// SPDX-License-Identifier: Apache-2.0
#include "group_log.hpp"

#include <fmt/core.h>

#include "result_layout.hpp"

namespace hpcai::benchmark {
namespace {

class GroupLog final : public Logger {
public:
    GroupLog(std::unique_ptr<Logger> console, std::unique_ptr<Logger> file)
        : console_(std::move(console)), file_(std::move(file)) {}

    void write(Severity severity, std::string_view message) override {
        if (file_ != nullptr) file_->write(severity, message);
        if (severity != Severity::info) console_->write(severity, message);
    }

private:
    std::unique_ptr<Logger> console_;
    std::unique_ptr<Logger> file_;  // null: not a leader
};

}  // namespace

std::unique_ptr<Logger> open_group_log(const Start& start) {
    const std::string label =
        fmt::format("group {} rank {}", start.place.group, start.place.group_rank);
    std::unique_ptr<Logger> file;
    if (start.place.group_rank == 0) {
        file = make_logger(label,
                           (group_directory(start.output, start.place.group) / "log.txt").string());
    }
    return std::make_unique<GroupLog>(make_logger(label, ""), std::move(file));
}

}  // namespace hpcai::benchmark
