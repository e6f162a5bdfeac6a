// SPDX-License-Identifier: Apache-2.0
#include "picture_file.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hpcai/data/jpeg.hpp>

namespace hpcai::data {

namespace {

/// An open file that is closed in every case.
class File {
public:
    // Non-blocking, so that opening a pipe put in the place of a picture does not hang.
    explicit File(const std::filesystem::path& path)
        : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
    ~File() {
        if (descriptor_ >= 0) close(descriptor_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    int descriptor() const { return descriptor_; }

private:
    int descriptor_;
};

[[noreturn]] void fail_to_read() {
    throw DecodeError(fmt::format("cannot be read: {}", std::strerror(errno)));
}

}  // namespace

std::vector<std::uint8_t> read_picture(const std::filesystem::path& path) {
    const File file(path);
    if (file.descriptor() < 0) fail_to_read();
    struct stat facts {};
    if (fstat(file.descriptor(), &facts) != 0) fail_to_read();
    if (!S_ISREG(facts.st_mode)) throw DecodeError("not a regular file");
    if (facts.st_size > kMaximumPictureBytes) {
        throw DecodeError(fmt::format("{} bytes, more than any picture", facts.st_size));
    }
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(facts.st_size));
    std::size_t filled = 0;
    while (filled < bytes.size()) {
        const ssize_t got = read(file.descriptor(), bytes.data() + filled, bytes.size() - filled);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail_to_read();
        if (got == 0) break;
        filled += static_cast<std::size_t>(got);
    }
    bytes.resize(filled);
    return bytes;
}

std::vector<std::uint8_t> read_picture(const StagedPictures* staged, std::uint32_t sample,
                                       const std::filesystem::path& path) {
    if (staged != nullptr) {
        if (auto bytes = staged->read(sample)) return std::move(*bytes);
    }
    return read_picture(path);
}

}  // namespace hpcai::data
