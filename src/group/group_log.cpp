// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <hpcai/group/group_log.hpp>
#include <hpcai/results/result_layout.hpp>

namespace hpcai::group {
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

std::unique_ptr<Logger> open_group_log(const context::RunContext& context) {
    const std::string label =
        fmt::format("group {} rank {}", context.place.group, context.place.group_rank);
    std::unique_ptr<Logger> file;
    if (context.place.group_rank == 0) {
        file = make_logger(
            label,
            (results::group_directory(context.output, context.place.group) / "log.txt").string());
    }
    return std::make_unique<GroupLog>(make_logger(label, ""), std::move(file));
}

}  // namespace hpcai::group
