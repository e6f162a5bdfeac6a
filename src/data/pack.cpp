// SPDX-License-Identifier: Apache-2.0
#include <system_error>

#include <fmt/ranges.h>

#include <hpcai/base/rounding.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/data/pack.hpp>
#include <hpcai/storage/sha256.hpp>

#include "picture_file.hpp"
#include "staging/pack_copy.hpp"
#include "worker_pool.hpp"

namespace hpcai::data {
namespace {

namespace fs = std::filesystem;
using staging::Pack;

constexpr std::int64_t kTarBlock = 512;                // bytes
constexpr std::int64_t kEndOfArchive = 2 * kTarBlock;  // bytes

/// Returns the header of the member `folder`/`name` (POSIX.1-1988, ustar).
std::string tar_header(const std::string& folder, std::string_view name, std::size_t bytes) {
    std::string header(kTarBlock, '\0');
    const auto put = [&](std::size_t offset, std::string_view text) {
        header.replace(offset, text.size(), text);
    };
    put(0, name);
    put(100, "0000644");  // mode, then owner and group
    put(108, "0000000");
    put(116, "0000000");
    put(124, fmt::format("{:011o}", bytes));
    put(136, "00000000000");  // modification time
    put(148, "        0");    // spaces instead of the checksum; type 0: regular file
    put(257, std::string_view("ustar\00000", 8));
    put(345, folder);
    std::uint32_t sum = 0;
    for (const char byte : header) sum += static_cast<unsigned char>(byte);
    put(148, fmt::format("{:06o}", sum) + '\0');
    return header;
}

std::string padded(std::string text) {
    text.resize(align_up(text.size(), kTarBlock));
    return text;
}

/// The image files of a folder and their shards.
struct PackJob {
    fs::path output;
    SampleIndex index;
    std::vector<staging::FileMetadata> metadata = {};  // by sample
    std::vector<Pack> shards = {};

    fs::path path_of(const Pack& shard) const { return output / shard.name; }

    /// Returns the size of a shard in bytes. Sets its samples' ranges in `packed`, if not null.
    std::int64_t shard_bytes(const Pack& shard, const std::vector<std::string>& digests,
                             SampleIndex* packed = nullptr) const {
        std::int64_t offset = 0;
        for (std::size_t i = 0; i < digests.size(); ++i) {
            const std::uint32_t sample = shard.files[i];
            const std::int64_t bytes = digests[i].empty() ? 0 : metadata[sample].bytes;
            offset += kTarBlock;
            if (packed != nullptr) {
                packed->ranges[sample] = {static_cast<std::int32_t>(packed->shards.size()), offset,
                                          bytes, digests[i]};
            }
            offset += align_up(bytes, kTarBlock) + 2 * kTarBlock;  // the image and its label
        }
        return offset + kEndOfArchive;
    }
    /// Returns whether an earlier call has written the whole shard.
    bool is_written(const Pack& shard) const {
        const auto written = staging::read_index(path_of(shard));
        return written && written->matches(shard) && written->is_complete() &&
               staging::read_metadata(path_of(shard)).bytes == shard_bytes(shard, written->digests);
    }
};

PackJob plan_shards(const PackOptions& options) {
    constexpr std::size_t kMaxShards = 400;     // two sets must fit into 1024 open files
    constexpr std::size_t kMaxClassName = 155;  // bytes of the header's `prefix`
    PackJob job{options.output, load_samples(options.input)};
    const SampleIndex& index = job.index;
    require(!index.is_packed(), ExitCode::usage, "'{}' is packed already", options.input);
    for (const std::string& name : index.classes) {
        require(is_path_below(name) && name.size() <= kMaxClassName, ExitCode::data,
                "{}: class '{}' cannot be packed; expected a name of at most {} bytes",
                index.root.string(), name, kMaxClassName);
    }
    staging::Source source;
    source.root = index.root;
    source.files = static_cast<std::uint32_t>(index.samples.size());
    source.path_of = [&](std::uint32_t sample) { return index.samples[sample].path; };
    source.metadata.resize(index.samples.size());
    parallel_for(source.files, options.threads, [&](std::int64_t sample) {
        source.metadata[sample] = staging::read_metadata(index.path_of(sample));
    });
    job.shards = staging::plan_packs(source, std::vector<std::uint8_t>(source.files, 1),
                                     std::int64_t{options.shard_mib} << 20, kMaxPictureBytes);
    job.metadata = std::move(source.metadata);
    require(!job.shards.empty(), ExitCode::data, "{}: no image can be read", index.root.string());
    require(job.shards.size() <= kMaxShards, ExitCode::usage,
            "--shard-mib: {} makes {} shards, expected at most {}", options.shard_mib,
            job.shards.size(), kMaxShards);
    const fs::path folder = fs::absolute(index.root / ".").lexically_normal().parent_path();
    std::string prefix = folder.filename().string();
    if (prefix.starts_with('.') || printable(prefix) != prefix) prefix = "shard";
    for (std::size_t i = 0; i < job.shards.size(); ++i) {
        Pack& shard = job.shards[i];
        shard.name = fmt::format("{}-{:06}.tar", prefix, i);
        // The fingerprint covers what names and labels depend on: sample numbers and classes.
        shard.fingerprint = storage::sha256_hex(storage::bytes_of(fmt::format(
            "{} {} {}", shard.fingerprint, shard.files[0], fmt::join(index.classes, "/"))));
    }
    return job;
}

/// Removes incomplete files of a killed program. Throws for a tar file that is not of this job.
void prepare_output(const PackJob& job) {
    storage::make_folder_durably(job.output);
    std::error_code error;
    std::vector<fs::path> incomplete;
    for (const auto& entry : fs::directory_iterator(job.output, error)) {
        const fs::path& path = entry.path();
        const std::string name = path.filename().string();
        const auto is_temporary_of = [&](const Pack& shard) {
            return name.starts_with("." + shard.name + ".");
        };
        if (path.extension() == ".tmp" && (name.starts_with(fmt::format(".{}.", kShardIndexName)) ||
                                           std::ranges::any_of(job.shards, is_temporary_of))) {
            incomplete.push_back(path);
        }
        const auto is_shard = [&](const Pack& shard) { return path == job.path_of(shard); };
        require(path.extension() != ".tar" ||
                    (std::ranges::any_of(job.shards, is_shard) && staging::read_index(path)),
                ExitCode::usage,
                "'{}' was not written by this command; remove it or use another folder",
                path.string());
    }
    for (const fs::path& path : incomplete) fs::remove(path, error);
}

/// Sets the tar members of a sample. Returns the SHA-256 of its image file. If the file cannot be
/// read, returns "" and makes its member empty.
std::string read_members(const PackJob& job, std::uint32_t sample, std::string& members) {
    const fs::path path = job.index.path_of(sample);
    const staging::FileMetadata& expected = job.metadata[sample];
    std::string bytes, digest;
    try {
        const std::vector<std::uint8_t> file = read_picture(path);
        require(std::ssize(file) == expected.bytes && staging::read_metadata(path) == expected,
                ExitCode::data, "'{}' changed while it was packed", path.string());
        bytes.assign(file.begin(), file.end());
        digest = storage::sha256_hex(storage::bytes_of(bytes));
    } catch (const DecodeError&) {
    }
    const std::int32_t label = job.index.samples[sample].label;
    const std::string& folder = job.index.classes[label];
    const std::string text = std::to_string(label);
    members = tar_header(folder, fmt::format("{:09}.jpg", sample), bytes.size()) + padded(bytes) +
              tar_header(folder, fmt::format("{:09}.cls", sample), text.size()) + padded(text);
    return digest;
}

void write_shard(const PackJob& job, const Pack& shard) {
    const fs::path path = job.path_of(shard);
    ::unlink(path.c_str());  // so that no old shard has the index of the new one
    storage::PendingPath pending(path);
    staging::PackIndex written{shard.fingerprint, shard.bytes, {}};
    const storage::Descriptor file(
        ::open(pending.path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    const auto write = [&](const std::string& text) {
        require(file.is_open() && storage::try_write(file, storage::bytes_of(text)),
                ExitCode::usage, "cannot write '{}': {}", path.string(), std::strerror(errno));
    };
    std::string members;
    for (const std::uint32_t sample : shard.files) {
        written.digests.push_back(read_members(job, sample, members));
        write(members);
    }
    write(std::string(kEndOfArchive, '\0'));
    staging::write_index(path, written);
    pending.commit();
}

}  // namespace

PackReport pack_pictures(const PackOptions& options) {
    const fs::path output = options.output;
    std::error_code error;
    require(!fs::exists(output / kShardIndexName, error), ExitCode::usage,
            "'{}' is packed already; remove it or choose another folder", options.output);
    const PackJob job = plan_shards(options);
    prepare_output(job);
    std::atomic<std::int64_t> kept{0};
    parallel_for(std::ssize(job.shards), options.threads, [&](std::int64_t i) {
        if (job.is_written(job.shards[i])) {
            ++kept;
        } else {
            write_shard(job, job.shards[i]);
        }
    });
    PackReport report{job.index, kept};
    report.index.root = output;
    report.index.ranges.resize(job.index.samples.size());
    for (const Pack& shard : job.shards) {
        const auto written = staging::read_index(job.path_of(shard));
        require(written && written->matches(shard), ExitCode::usage,
                "another program has changed '{}'", job.path_of(shard).string());
        const std::int64_t bytes = job.shard_bytes(shard, written->digests, &report.index);
        report.index.shards.push_back({shard.name, bytes});
    }
    write_index(report.index, output / kShardIndexName);
    for (const Pack& shard : job.shards) fs::remove(staging::index_path(job.path_of(shard)), error);
    return report;
}

}  // namespace hpcai::data
