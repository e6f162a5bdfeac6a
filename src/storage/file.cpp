// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <string>

#include <sys/stat.h>

#include <hpcai/storage/descriptor.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/replace_file.hpp>

namespace hpcai::storage {
namespace {

constexpr std::size_t kLargestTransfer = std::size_t{1} << 30;  // Linux stops just under 2 GiB

[[noreturn]] void fail_write(const std::filesystem::path& path, const char* action, int error) {
    throw Error(ExitCode::usage, fmt::format("cannot write '{}': {}: {}", path.string(), action,
                                             std::strerror(error)));
}

/// Removes the temporary file unless it has become the real one.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::filesystem::path& target) : target_(target) {
        // Ranks of several hosts may share the folder, so only O_EXCL makes the name ours.
        for (int attempt = 0; attempt < 1000; ++attempt) {
            path_ = target.parent_path() /
                    fmt::format(".{}.{}-{}.tmp", target.filename().string(), ::getpid(), attempt);
            number_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
            if (number_ >= 0) return;
            if (errno != EEXIST) fail_write(target_, "open", errno);
        }
        fail_write(target_, "open", EEXIST);
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    ~TemporaryFile() {
        if (number_ >= 0) ::close(number_);
        if (!kept_) ::unlink(path_.c_str());
    }

    void write(Bytes bytes) {
        while (!bytes.empty()) {
            const ssize_t written =
                ::write(number_, bytes.data(), std::min(bytes.size(), kLargestTransfer));
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) fail_write(target_, "write", errno);
            bytes = bytes.subspan(static_cast<std::size_t>(written));
        }
    }

    void sync() const {
        if (::fsync(number_) != 0) fail_write(target_, "fsync", errno);
    }

    void become_target() {
        if (::close(std::exchange(number_, -1)) != 0) fail_write(target_, "close", errno);
        if (::rename(path_.c_str(), target_.c_str()) != 0) fail_write(target_, "rename", errno);
        kept_ = true;
    }

private:
    std::filesystem::path target_;
    std::filesystem::path path_;
    int number_ = -1;
    bool kept_ = false;
};

void sync_folder_of(const std::filesystem::path& path) {
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!descriptor.open()) fail_write(path, "open folder", errno);
    // Some network file systems cannot sync a folder and say EINVAL.
    if (::fsync(descriptor.number()) != 0 && errno != EINVAL) {
        fail_write(path, "fsync folder", errno);
    }
}

}  // namespace

void write_file_durably(const std::filesystem::path& path, std::span<const Bytes> parts) {
    TemporaryFile file(path);
    for (const Bytes part : parts) file.write(part);
    file.sync();
    file.become_target();
    sync_folder_of(path);
}

void replace_file(const std::filesystem::path& path, std::string_view text) {
    TemporaryFile file(path);
    file.write(bytes_of(text));
    file.become_target();
}

void write_file_durably(const std::filesystem::path& path, std::string_view text) {
    const Bytes bytes = bytes_of(text);
    write_file_durably(path, {&bytes, 1});
}

Descriptor open_for_reading(const std::filesystem::path& path) {
    // Without O_NONBLOCK a named pipe would wait for a writer for ever.
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    require(file.open(), ExitCode::data, "cannot read '{}': {}", path.string(),
            std::strerror(errno));
    struct stat status {};
    require(::fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode), ExitCode::data,
            "cannot read '{}': not a regular file", path.string());
    return file;
}

std::size_t read_some(const Descriptor& file, const std::filesystem::path& path,
                      std::span<std::byte> buffer) {
    std::size_t filled = 0;
    while (filled < buffer.size()) {
        const ssize_t count = ::read(file.number(), buffer.data() + filled,
                                     std::min(buffer.size() - filled, kLargestTransfer));
        if (count < 0 && errno == EINTR) continue;
        require(count >= 0, ExitCode::data, "cannot read '{}': {}", path.string(),
                std::strerror(errno));
        if (count == 0) break;
        filled += static_cast<std::size_t>(count);
    }
    return filled;
}

std::vector<std::byte> read_file_bytes(const std::filesystem::path& path, std::size_t limit_bytes) {
    const Descriptor file = open_for_reading(path);
    struct stat status {};
    ensure(::fstat(file.number(), &status) == 0, "fstat of '{}'", path.string());
    const auto size_bytes = static_cast<std::uint64_t>(status.st_size);
    require(size_bytes <= limit_bytes, ExitCode::data,
            "'{}' has {} bytes, more than the {} that are read", path.string(), size_bytes,
            limit_bytes);
    std::vector<std::byte> bytes(static_cast<std::size_t>(size_bytes));
    bytes.resize(read_some(file, path, bytes));
    std::byte more{};
    require(read_some(file, path, {&more, 1}) == 0, ExitCode::data, "'{}' grew while it was read",
            path.string());
    return bytes;
}

}  // namespace hpcai::storage
