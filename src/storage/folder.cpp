// SPDX-License-Identifier: Apache-2.0
#include <hpcai/storage/descriptor.hpp>
#include <hpcai/storage/folder.hpp>

namespace hpcai::storage {

void make_folder_durably(const std::filesystem::path& folder) {
    std::error_code error;
    if (folder.empty() || std::filesystem::is_directory(folder, error)) return;
    const std::filesystem::path above = folder.has_parent_path() ? folder.parent_path() : ".";
    if (above != folder) make_folder_durably(above);
    std::filesystem::create_directory(folder, error);
    require(!error, ExitCode::usage, "cannot make the folder '{}': {}", folder.string(),
            error.message());
    const Descriptor descriptor(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Some network file systems cannot sync a folder and say EINVAL.
    const bool is_synced =
        descriptor.open() && (::fsync(descriptor.number()) == 0 || errno == EINVAL);
    const int why = errno;
    require(is_synced, ExitCode::usage, "cannot sync the folder '{}': {}", above.string(),
            std::strerror(why));
}

}  // namespace hpcai::storage
