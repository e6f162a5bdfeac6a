// SPDX-License-Identifier: Apache-2.0
#include "mapped_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <hpcai/storage/descriptor.hpp>

namespace hpcai::data {

MappedFile::MappedFile(const std::filesystem::path& path, std::size_t bytes) {
    const storage::Descriptor file = storage::open_for_reading(path);
    struct stat status {};
    ensure(::fstat(file.number(), &status) == 0, "fstat of '{}'", path.string());
    require(static_cast<std::size_t>(status.st_size) == bytes, ExitCode::data,
            "'{}' has {} bytes, expected {}", path.string(), status.st_size, bytes);
    void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.number(), 0);
    require(memory != MAP_FAILED, ExitCode::data, "cannot map '{}': {}", path.string(),
            std::strerror(errno));
    bytes_ = {static_cast<const std::byte*>(memory), bytes};
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace hpcai::data
