// SPDX-License-Identifier: Apache-2.0
#include "mapped_file.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hpcai/base/error.hpp>

namespace hpcai::data {

MappedFile::MappedFile(const std::filesystem::path& path, std::size_t bytes) {
    // Without O_NONBLOCK a named pipe would wait for a writer for ever.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    require(file >= 0, ExitCode::data, "cannot read '{}': {}", path.string(), std::strerror(errno));
    struct stat status {};
    const bool regular = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    const auto found = regular ? static_cast<std::size_t>(status.st_size) : 0;
    void* const memory = regular && found == bytes
                             ? ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0)
                             : MAP_FAILED;
    const int error = errno;
    ::close(file);
    require(regular, ExitCode::data, "cannot read '{}': not a regular file", path.string());
    require(found == bytes, ExitCode::data, "'{}' has {} bytes, expected {}", path.string(), found,
            bytes);
    require(memory != MAP_FAILED, ExitCode::data, "cannot map '{}': {}", path.string(),
            std::strerror(error));
    bytes_ = {static_cast<const std::byte*>(memory), bytes};
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace hpcai::data
