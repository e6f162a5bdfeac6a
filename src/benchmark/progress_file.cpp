// SPDX-License-Identifier: Apache-2.0
#include "progress_file.hpp"

#include <chrono>
#include <system_error>

#include <hpcai/base/error.hpp>
#include <hpcai/report/progress.hpp>
#include <hpcai/storage/replace_file.hpp>

#include "group_job.hpp"

namespace hpcai::benchmark {

void write_progress(const std::filesystem::path& output, int group, ProgressRecord progress) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    progress.written_unix_seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    try {
        storage::replace_file(group_directory(output, group) / report::kProgressName,
                              report::to_json(progress));
    } catch (const Error&) {
        return;
    }
}

void remove_progress(const std::filesystem::path& output) {
    std::error_code error;
    for (std::filesystem::directory_iterator group(output / "groups", error), end; group != end;
         group.increment(error)) {
        std::filesystem::remove(group->path() / report::kProgressName, error);
    }
}

}  // namespace hpcai::benchmark
