// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <system_error>
#include <utility>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/data/data_paths.hpp>

namespace hpcai::data {

void require_data_paths(const config::DataConfig& data, comm::Communicator& group) {
    using config::DataKind;
    if (data.kind == DataKind::synthetic || data.kind == DataKind::climate_synthetic) return;
    comm::collective_try(group, [&] {
        if (group.rank() != 0) return;
        // By the names of their keys, as a run that is resumed elsewhere lacks them.
        for (const auto& [key, path] : {std::pair{"path", data.path},
                                        {"validation_path", data.validation_path},
                                        {"image_path", data.image_path},
                                        {"validation_image_path", data.validation_image_path}}) {
            std::error_code error;
            const std::filesystem::path wanted = path;
            if (path.empty() || std::filesystem::exists(wanted, error)) continue;
            const std::string what = error ? error.message() : "is not there";
            const std::string where =
                wanted.is_absolute() ? ""
                                     : fmt::format(" in the working directory '{}'",
                                                   std::filesystem::current_path(error).string());
            throw Error(ExitCode::data, fmt::format("data.{}: '{}' {}{}", key, path, what, where));
        }
    });
}

}  // namespace hpcai::data
