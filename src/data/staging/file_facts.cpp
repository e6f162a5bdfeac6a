// SPDX-License-Identifier: Apache-2.0
#include "file_facts.hpp"

#include <sys/stat.h>

namespace hpcai::data::staging {

namespace {

FileFacts from(const struct stat& status) {
    if (!S_ISREG(status.st_mode)) return {};
    return {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

}  // namespace

FileFacts facts_of(const std::filesystem::path& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? from(status) : FileFacts{};
}

FileFacts facts_of(const storage::Descriptor& file) {
    struct stat status {};
    return ::fstat(file.number(), &status) == 0 ? from(status) : FileFacts{};
}

}  // namespace hpcai::data::staging
