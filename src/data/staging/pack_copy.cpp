// SPDX-License-Identifier: Apache-2.0
#include "pack_copy.hpp"

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/storage/strict_json.hpp>

namespace hpcai::data::staging {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxPackIndexBytes = std::size_t{256} << 20;

/// Throws json::exception for members that are missing or have another type.
std::optional<PackIndex> from_json(const json& document) {
    if (!document.is_object() || document.at("schema").get<std::string>() != kIndexSchema ||
        !document.at("bytes").is_number_unsigned()) {
        return std::nullopt;
    }
    PackIndex index{document.at("fingerprint").get<std::string>(),
                    document.at("bytes").get<std::int64_t>(),
                    document.at("sha256").get<std::vector<std::string>>()};
    const auto is_entry = [](const std::string& text) {
        return text.empty() || storage::is_sha256_hex(text);
    };
    if (!storage::is_sha256_hex(index.fingerprint) ||
        !std::ranges::all_of(index.digests, is_entry)) {
        return std::nullopt;
    }
    return index;
}

constexpr std::int64_t kBlockBytes = 1 << 20;  // of one read

FileMetadata metadata_of(const struct stat& status) {
    if (!S_ISREG(status.st_mode)) return {};
    return {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

/// Reads up to `bytes` bytes, calls consume() for each block, and returns the number of bytes read.
template <typename Consume>
std::int64_t for_each_block(const storage::Descriptor& file, const std::filesystem::path& path,
                            std::int64_t bytes, const std::atomic<bool>& stop,
                            const Consume& consume) {
    std::vector<std::byte> block(std::min(bytes, kBlockBytes));
    std::int64_t total = 0;
    while (total < bytes) {
        if (stop) throw Stopped();
        const std::int64_t wanted = std::min(bytes - total, kBlockBytes);
        const std::int64_t got = storage::read_full(file, path, std::span(block).first(wanted));
        consume(storage::Bytes(block).first(got));
        total += got;
        if (got < wanted) break;
    }
    return total;
}

/// A pack that is written sequentially.
struct NewPack {
    std::filesystem::path path;  // of the complete pack
    storage::Descriptor file;

    /// Throws Error(usage) with the text of errno if a system call has failed.
    void check(bool has_succeeded) const {
        require(has_succeeded, ExitCode::usage, "cannot write '{}' (data.staging_directory): {}",
                path.string(), std::strerror(errno));
    }
};

/// Thrown for a source file that cannot be opened or read.
struct Unreadable {
    Error error;
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

/// Copies the file to `output` and returns its SHA-256. Throws Unreadable, or Error(data) if the
/// file has changed or another SHA-256 is listed.
std::string copy_file(const CopyContext& context, std::uint32_t number, const NewPack& output) {
    const std::filesystem::path path = context.source.full_path(number);
    const FileMetadata& expected = context.source.metadata[number];
    storage::Sha256 hash;
    const storage::Descriptor file = read_source([&] { return storage::open_for_reading(path); });
    const SampleIndex* const packed = context.source.packed;
    if (packed != nullptr) {
        const std::int64_t offset = packed->ranges[number].offset;
        require(::lseek(file.number(), offset, SEEK_SET) == offset, ExitCode::data,
                "'{}' cannot be read from byte {}", path.string(), offset);
    }
    const std::int64_t copied = read_source([&] {
        return for_each_block(file, path, expected.bytes, context.stop, [&](storage::Bytes block) {
            hash.update(block);
            output.check(storage::try_write(output.file, block));
        });
    });
    const FileMetadata now =
        packed != nullptr ? read_metadata(*packed, number) : read_metadata(file);
    require(copied == expected.bytes && now == expected, ExitCode::data,
            "'{}' changed while it was staged: it had {} bytes, {} were read, now it has {}",
            path.string(), expected.bytes, copied, now.bytes);
    const std::string digest = hash.finish_hex();
    const std::string_view listed = context.source.listed_digest(number);
    require(listed.empty() || listed == digest, ExitCode::data,
            "'{}' is damaged: its SHA-256 is not the one that {} in '{}' lists",
            packed != nullptr ? packed->location_of(number) : path.string(),
            packed != nullptr ? kShardIndexName : storage::kManifestName,
            context.source.root.string());
    context.counters.written_bytes += expected.bytes;
    return digest;
}

/// Copies the file to `offset` of the pack like copy_file(). With context.has_pictures, skips the
/// range of a file that cannot be read, and returns "".
std::string copy_or_skip(const CopyContext& context, std::uint32_t number, std::int64_t offset,
                         const NewPack& output) {
    try {
        return copy_file(context, number, output);
    } catch (const Unreadable& unreadable) {
        if (!context.has_pictures) throw unreadable.error;
    }
    const off_t end = offset + context.source.metadata[number].bytes;
    output.check(::ftruncate(output.file.number(), end) == 0 &&
                 ::lseek(output.file.number(), end, SEEK_SET) == end);
    ++context.counters.unreadable_files;
    return "";
}

bool matches_digests(const CopyContext& context, const Pack& pack, const PackIndex& index) {
    const std::filesystem::path path = context.folder / pack.name;
    const storage::Descriptor file = storage::open_for_reading(path);
    if (read_metadata(file).bytes != pack.bytes) return false;
    for (std::size_t i = 0; i < pack.files.size(); ++i) {
        const std::int64_t bytes = context.source.metadata[pack.files[i]].bytes;
        storage::Sha256 hash;
        const std::int64_t read = for_each_block(file, path, bytes, context.stop,
                                                 [&](storage::Bytes block) { hash.update(block); });
        if (read != bytes || hash.finish_hex() != index.digests[i]) return false;
        const std::string_view listed = context.source.listed_digest(pack.files[i]);
        if (!listed.empty() && listed != index.digests[i]) return false;
    }
    return true;
}

}  // namespace

std::filesystem::path index_path(const std::filesystem::path& pack) {
    return pack.string() + kIndexSuffix;
}

void write_index(const std::filesystem::path& pack, const PackIndex& index) {
    const json document{{"schema", kIndexSchema},
                        {"fingerprint", index.fingerprint},
                        {"bytes", index.bytes},
                        {"sha256", index.digests}};
    storage::write_file_durably(index_path(pack), document.dump() + "\n");
}

std::optional<PackIndex> read_index(const std::filesystem::path& pack) {
    try {
        const std::string text = storage::read_file_text(index_path(pack), kMaxPackIndexBytes);
        return from_json(storage::parse_strict_json(text, pack.string()));
    } catch (const Error&) {
        return std::nullopt;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

FileMetadata read_metadata(const std::filesystem::path& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? metadata_of(status) : FileMetadata{};
}

FileMetadata read_metadata(const storage::Descriptor& file) {
    struct stat status {};
    return ::fstat(file.number(), &status) == 0 ? metadata_of(status) : FileMetadata{};
}

FileMetadata read_metadata(const SampleIndex& packed, std::uint32_t sample) {
    FileMetadata metadata = read_metadata(packed.path_of(sample));
    const ShardRange& range = packed.ranges[sample];
    metadata.bytes = metadata.bytes < range.offset + range.bytes ? -1 : range.bytes;
    return metadata;
}

bool verify_or_remove(const CopyContext& context, const Pack& pack) {
    const std::filesystem::path path = context.folder / pack.name;
    const std::optional<PackIndex> index = read_index(path);
    bool is_sound = false;
    try {
        is_sound = index && index->matches(pack) && index->is_complete() &&
                   matches_digests(context, pack, *index);
    } catch (const Error&) {  // the pack cannot be read
    }
    if (is_sound) {
        context.counters.verified_bytes += pack.bytes;
        return true;
    }
    ::unlink(path.c_str());  // the new pack needs the space
    return false;
}

void copy_pack(const CopyContext& context, const Pack& pack) {
    const std::filesystem::path path = context.folder / pack.name;
    storage::PendingPath pending(path);
    PackIndex index{pack.fingerprint, pack.bytes, {}};
    {
        const NewPack output{
            path, storage::Descriptor(::open(pending.path().c_str(),
                                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                             0600))};
        output.check(output.file.is_open());
        std::int64_t offset = 0;
        for (const std::uint32_t file : pack.files) {
            index.digests.push_back(copy_or_skip(context, file, offset, output));
            offset += context.source.metadata[file].bytes;
        }
    }
    write_index(path, index);
    pending.commit();
}

}  // namespace hpcai::data::staging
