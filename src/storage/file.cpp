// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <system_error>

#include <sys/stat.h>

#include <hpcai/storage/file.hpp>

namespace hpcai::storage {
namespace {

// Linux transfers less than 2 GiB per call.
constexpr std::size_t kMaxTransfer = std::size_t{1} << 30;

[[noreturn]] void fail_write(const fs::path& path, const char* action, int error) {
    throw Error(ExitCode::usage, fmt::format("cannot write '{}': {}: {}", path.string(), action,
                                             std::strerror(error)));
}

/// A file next to the target. commit() renames it; without commit(), the destructor removes it.
class TemporaryFile {
public:
    explicit TemporaryFile(const fs::path& target) : target_(target) {
        // Processes of other hosts may have the same id, so only O_EXCL makes the name unique.
        for (int attempt = 0; attempt < 1000; ++attempt) {
            path_ = target.parent_path() /
                    fmt::format(".{}.{}-{}.tmp", target.filename().string(), ::getpid(), attempt);
            file_ =
                Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
            if (file_.is_open()) return;
            if (errno != EEXIST) fail_write(target_, "open", errno);
        }
        fail_write(target_, "open", EEXIST);
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    ~TemporaryFile() {
        if (!is_committed_) ::unlink(path_.c_str());
    }

    void write(Bytes bytes) const {
        if (!try_write(file_, bytes)) fail_write(target_, "write", errno);
    }

    void sync() const {
        if (::fsync(file_.number()) != 0) fail_write(target_, "fsync", errno);
    }

    void commit() {
        if (!file_.close()) fail_write(target_, "close", errno);
        if (::rename(path_.c_str(), target_.c_str()) != 0) fail_write(target_, "rename", errno);
        is_committed_ = true;
    }

private:
    fs::path target_;
    fs::path path_;
    Descriptor file_{-1};
    bool is_committed_ = false;
};

void sync(const fs::path& path, const fs::path& target) {
    if (!try_sync(path)) fail_write(target, "fsync", errno);
}

/// Returns whether `folder` is the root of a file system, which a rename cannot replace.
bool is_mount_point(const fs::path& folder) {
    struct stat inside {
    }, outside{};
    return ::stat(folder.c_str(), &inside) == 0 && ::stat((folder / "..").c_str(), &outside) == 0 &&
           S_ISDIR(inside.st_mode) && inside.st_dev != outside.st_dev;
}

bool is_folder(const fs::path& path) {
    std::error_code unknown;
    return fs::is_directory(path, unknown);
}

void require_replaceable(const fs::path& target) {
    std::error_code error;
    const fs::path name = target.filename();
    require(!name.empty() && name != "." && name != "..", ExitCode::usage,
            "cannot write '{}': expected the name of a file or folder", target.string());
    require(!fs::is_symlink(target, error), ExitCode::usage,
            "cannot write '{}': it is a symbolic link; pass its target", target.string());
    require(!is_mount_point(target), ExitCode::usage,
            "cannot write '{}': it is a mount point; pass a folder below it", target.string());
}

template <typename Content>
Content read_content(const fs::path& path, std::size_t limit_bytes) {
    const Descriptor file = open_for_reading(path);
    struct stat status {};
    ensure(::fstat(file.number(), &status) == 0, "fstat failed for '{}'", path.string());
    const auto size_bytes = static_cast<std::uint64_t>(status.st_size);
    require(size_bytes <= limit_bytes, ExitCode::data, "'{}' has {} bytes; the limit is {}",
            path.string(), size_bytes, limit_bytes);
    Content content;
    content.resize(size_bytes);
    content.resize(read_full(file, path, std::as_writable_bytes(std::span(content))));
    std::byte more{};
    require(read_full(file, path, {&more, 1}) == 0, ExitCode::data, "'{}' grew while it was read",
            path.string());
    return content;
}

}  // namespace

void write_file_durably(const fs::path& path, std::span<const Bytes> parts) {
    TemporaryFile file(path);
    for (const Bytes part : parts) file.write(part);
    file.sync();
    file.commit();
    const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
    if (!try_sync(folder)) fail_write(path, "fsync folder", errno);
}

void replace_file(const fs::path& path, std::string_view text) {
    TemporaryFile file(path);
    file.write(bytes_of(text));
    file.commit();
}

void write_file_durably(const fs::path& path, std::string_view text) {
    const Bytes bytes = bytes_of(text);
    write_file_durably(path, {&bytes, 1});
}

void make_folder_durably(const fs::path& folder) {
    if (folder.empty() || is_folder(folder)) return;
    const fs::path parent = folder.has_parent_path() ? folder.parent_path() : ".";
    if (parent != folder) make_folder_durably(parent);
    std::error_code error;
    fs::create_directory(folder, error);
    require(!error, ExitCode::usage, "cannot create the folder '{}': {}", folder.string(),
            error.message());
    const bool is_synced = try_sync(parent);
    require(is_synced, ExitCode::usage, "cannot sync the folder '{}': {}", parent.string(),
            std::strerror(errno));
}

Descriptor open_for_reading(const fs::path& path) {
    // Without O_NONBLOCK, opening a named pipe would wait for a writer.
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    require(file.is_open(), ExitCode::data, "cannot read '{}': {}", path.string(),
            std::strerror(errno));
    struct stat status {};
    require(::fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode), ExitCode::data,
            "cannot read '{}': not a regular file", path.string());
    return file;
}

std::optional<std::size_t> try_read(const Descriptor& file, std::span<std::byte> buffer,
                                    std::optional<std::int64_t> offset) noexcept {
    std::size_t filled = 0;
    while (filled < buffer.size()) {
        std::byte* const to = buffer.data() + filled;
        const std::size_t bytes = std::min(buffer.size() - filled, kMaxTransfer);
        const ssize_t count =
            offset ? ::pread(file.number(), to, bytes, *offset + static_cast<off_t>(filled))
                   : ::read(file.number(), to, bytes);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return std::nullopt;
        if (count == 0) break;
        filled += static_cast<std::size_t>(count);
    }
    return filled;
}

std::size_t read_full(const Descriptor& file, const fs::path& path, std::span<std::byte> buffer) {
    const std::optional<std::size_t> count = try_read(file, buffer);
    require(count.has_value(), ExitCode::data, "cannot read '{}': {}", path.string(),
            std::strerror(errno));
    return *count;
}

bool try_write(const Descriptor& file, std::span<const std::byte> bytes) noexcept {
    while (!bytes.empty()) {
        const ssize_t written =
            ::write(file.number(), bytes.data(), std::min(bytes.size(), kMaxTransfer));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        bytes = bytes.subspan(written);
    }
    return true;
}

bool try_sync(const fs::path& path) noexcept {
    int error = 0;
    {
        const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!descriptor.is_open() || ::fsync(descriptor.number()) != 0) error = errno;
    }
    errno = error;  // closing the descriptor may have changed errno
    return error == 0 || error == EINVAL;
}

std::vector<std::byte> read_file_bytes(const fs::path& path, std::size_t limit_bytes) {
    return read_content<std::vector<std::byte>>(path, limit_bytes);
}

std::string read_file_text(const fs::path& path, std::size_t limit_bytes) {
    return read_content<std::string>(path, limit_bytes);
}

PendingPath::PendingPath(const fs::path& target)
    : target_(target.has_filename() ? target : target.parent_path()) {  // without a final slash
    require_replaceable(target_);
    path_ =
        target_.parent_path() / fmt::format(".{}.{}.tmp", target_.filename().string(), ::getpid());
    require(!is_folder(path_), ExitCode::usage,
            "cannot write '{}': '{}' exists; remove it unless another program writes to it",
            target_.string(), path_.string());
}

PendingPath::~PendingPath() {
    std::error_code ignored;
    if (!is_committed_) fs::remove_all(path_, ignored);
}

void PendingPath::commit() {
    if (is_folder(path_)) {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(path_, error)) sync(entry.path(), target_);
        if (error) fail_write(target_, "list", error.value());
    }
    sync(path_, target_);
    if (std::rename(path_.c_str(), target_.c_str()) != 0) fail_write(target_, "rename", errno);
    is_committed_ = true;
    sync(target_.has_parent_path() ? target_.parent_path() : fs::path("."), target_);
}

}  // namespace hpcai::storage
