// SPDX-License-Identifier: Apache-2.0
#include "picture_file.hpp"

#include <cerrno>
#include <cstring>

#include <sys/stat.h>

namespace hpcai::data {
namespace {

[[noreturn]] void fail_to_read() {
    throw DecodeError(fmt::format("cannot be read: {}", std::strerror(errno)));
}

}  // namespace

std::vector<std::uint8_t> read_picture(const std::filesystem::path& path) {
    // Without O_NONBLOCK, opening a named pipe would wait for a writer.
    const storage::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!file.is_open() || ::fstat(file.number(), &status) != 0) fail_to_read();
    if (!S_ISREG(status.st_mode)) throw DecodeError("not a regular file");
    if (status.st_size > kMaxPictureBytes) {
        throw DecodeError(fmt::format("{} bytes, more than {}", status.st_size, kMaxPictureBytes));
    }
    std::vector<std::uint8_t> bytes(status.st_size);
    const auto filled = storage::try_read(file, std::as_writable_bytes(std::span(bytes)));
    if (!filled) fail_to_read();
    bytes.resize(*filled);
    return bytes;
}

std::vector<std::uint8_t> IndexedPictures::read(std::size_t sample) const {
    const std::filesystem::path path = index_.path_of(sample);
    if (!index_.is_packed()) return read_picture(path);
    const ShardRange& range = index_.ranges[sample];
    OpenShard& shard = shards_[range.shard];
    std::call_once(shard.once, [&] {  // after an exception, the next read tries again
        shard.file = storage::Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
        if (!shard.file.is_open()) fail_to_read();
    });
    std::vector<std::uint8_t> bytes(range.bytes);
    const auto filled =
        storage::try_read(shard.file, std::as_writable_bytes(std::span(bytes)), range.offset);
    if (!filled) fail_to_read();
    if (*filled < bytes.size()) throw DecodeError("the shard ends before the end of the image");
    return bytes;
}

}  // namespace hpcai::data
