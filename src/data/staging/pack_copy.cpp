// SPDX-License-Identifier: Apache-2.0
#include "pack_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hpcai/base/error.hpp>
#include <hpcai/storage/pending_path.hpp>
#include <hpcai/storage/sha256.hpp>

#include "pack_index.hpp"

namespace hpcai::data::staging {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

FileFacts facts_from(const struct stat& status) {
    if (!S_ISREG(status.st_mode)) return {};
    return {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

/// Calls take(block) for up to `bytes` bytes of an open file. Returns the number of bytes read.
template <typename Take>
std::uint64_t for_each_block(const storage::Descriptor& file, const std::filesystem::path& path,
                             std::uint64_t bytes, const std::atomic<bool>& stop, const Take& take) {
    std::vector<std::byte> block(std::min<std::uint64_t>(bytes, kBlockBytes));
    std::uint64_t taken = 0;
    while (taken < bytes) {
        if (stop) throw Stopped();
        const std::size_t wanted = std::min<std::uint64_t>(bytes - taken, block.size());
        const std::size_t got = storage::read_some(file, path, std::span(block).first(wanted));
        take(storage::Bytes(block).first(got));
        taken += got;
        if (got < wanted) break;
    }
    return taken;
}

/// A new file that is written sequentially.
class Output {
public:
    Output(const std::filesystem::path& path, const std::filesystem::path& final_path)
        : final_path_(final_path),
          file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) {
        if (!file_.is_open()) fail();
    }
    void write(storage::Bytes bytes) {
        if (!storage::try_write(file_, bytes)) fail();
    }
    /// Extends the file to `offset` and continues writing there.
    void go_to(std::uint64_t offset) {
        const auto end = static_cast<off_t>(offset);
        if (::ftruncate(file_.number(), end) != 0) fail();
        if (::lseek(file_.number(), end, SEEK_SET) != end) fail();
    }

private:
    [[noreturn]] void fail() const {
        throw Error(ExitCode::usage, fmt::format("cannot write '{}' (data.staging_directory): {}",
                                                 final_path_.string(), std::strerror(errno)));
    }

    std::filesystem::path final_path_;
    storage::Descriptor file_;
};

/// A source file that cannot be opened or read.
struct Unreadable {
    Error why;
};

template <typename Read>
auto read_source(const Read& read) {
    try {
        return read();
    } catch (const Error& error) {
        if (error.code() == ExitCode::data) throw Unreadable{error};
        throw;
    }
}

/// Copies the file to `output` and returns its SHA-256. Throws Unreadable.
std::string copy_file(const Copying& copying, std::uint32_t number, Output& output) {
    const std::filesystem::path path = copying.source.full_path(number);
    const FileFacts& expected = copying.source.facts[number];
    const auto bytes = static_cast<std::uint64_t>(expected.bytes);
    storage::Sha256 hash;
    const storage::Descriptor file = read_source([&] { return storage::open_for_reading(path); });
    const std::uint64_t copied = read_source([&] {
        return for_each_block(file, path, bytes, copying.stop, [&](storage::Bytes block) {
            hash.update(block);
            output.write(block);
        });
    });
    const FileFacts now = facts_of(file);
    require(copied == bytes && now == expected, ExitCode::data,
            "'{}' changed while it was staged: {} bytes were listed, {} were read, it has {} now",
            path.string(), bytes, copied, now.bytes);
    const std::string digest = hash.finish_hex();
    const auto listed = copying.source.digests.find(copying.source.path_of(number));
    require(listed == copying.source.digests.end() || listed->second == digest, ExitCode::data,
            "'{}' is damaged: its SHA-256 is not the one that manifest.sha256 in '{}' lists",
            path.string(), copying.source.root.string());
    copying.traffic.written += bytes;
    return digest;
}

/// Copies the file to `offset` of the pack like copy_file(). Returns "" if the file cannot be read
/// and is therefore not staged.
std::string copy_or_leave(const Copying& copying, std::uint32_t number, std::uint64_t offset,
                          Output& output) {
    try {
        return copy_file(copying, number, output);
    } catch (const Unreadable& unreadable) {
        if (!copying.is_packed) throw unreadable.why;
    }
    output.go_to(offset + static_cast<std::uint64_t>(copying.source.facts[number].bytes));
    ++copying.traffic.left;
    return "";
}

bool has_digests(const Copying& copying, const Pack& pack, const PackIndex& index) {
    const std::filesystem::path path = copying.folder / pack.name;
    const storage::Descriptor file = storage::open_for_reading(path);
    if (facts_of(file).bytes != static_cast<std::int64_t>(pack.bytes)) return false;
    for (std::size_t i = 0; i < pack.files.size(); ++i) {
        const auto bytes = static_cast<std::uint64_t>(copying.source.facts[pack.files[i]].bytes);
        storage::Sha256 hash;
        const std::uint64_t read = for_each_block(
            file, path, bytes, copying.stop, [&](storage::Bytes block) { hash.update(block); });
        if (read != bytes || hash.finish_hex() != index.digests[i]) return false;
        const auto listed = copying.source.digests.find(copying.source.path_of(pack.files[i]));
        if (listed != copying.source.digests.end() && listed->second != index.digests[i]) {
            return false;
        }
    }
    return true;
}

}  // namespace

FileFacts facts_of(const std::filesystem::path& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? facts_from(status) : FileFacts{};
}

FileFacts facts_of(const storage::Descriptor& file) {
    struct stat status {};
    return ::fstat(file.number(), &status) == 0 ? facts_from(status) : FileFacts{};
}

bool is_whole(const Copying& copying, const Pack& pack) {
    const std::filesystem::path path = copying.folder / pack.name;
    const std::optional<PackIndex> index = read_index(path);
    bool is_sound = false;
    try {
        is_sound =
            index && index->is_of(pack) && index->has_all() && has_digests(copying, pack, *index);
    } catch (const Error&) {
        is_sound = false;  // a read error of the disk
    }
    if (is_sound) {
        copying.traffic.verified += pack.bytes;
        return true;
    }
    ::unlink(path.c_str());  // the new pack needs the space
    return false;
}

void copy_pack(const Copying& copying, const Pack& pack) {
    const std::filesystem::path path = copying.folder / pack.name;
    storage::PendingPath pending(path);
    PackIndex index{pack.fingerprint, pack.bytes, {}};
    {
        Output output(pending.path(), path);
        std::uint64_t offset = 0;
        for (const std::uint32_t file : pack.files) {
            index.digests.push_back(copy_or_leave(copying, file, offset, output));
            offset += static_cast<std::uint64_t>(copying.source.facts[file].bytes);
        }
    }
    write_index(path, index);
    pending.commit();
}

}  // namespace hpcai::data::staging
