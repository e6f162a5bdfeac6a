// SPDX-License-Identifier: Apache-2.0
#include "stage_folder.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include <dirent.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "pack_copy.hpp"

namespace hpcai::data::staging {
namespace {

namespace fs = std::filesystem;
using storage::Descriptor;

constexpr const char* kMarker = "stage.json";
constexpr int kMarkerFlags =
    O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;  // the lock needs read and write access
constexpr std::string_view kRunning = "running-";

std::string marker_text() {
    return fmt::format("{{\"schema\": \"{}\"}}\n", kStageSchema);
}

[[noreturn]] void fail(const fs::path& path, const std::string& why) {
    throw Error(ExitCode::usage,
                fmt::format("data.staging_directory: '{}' {}", path.string(), why));
}

[[noreturn]] void fail_with_errno(const fs::path& path, const char* action) {
    throw Error(ExitCode::usage, fmt::format("data.staging_directory: cannot {} '{}': {}", action,
                                             path.string(), std::strerror(errno)));
}

/// Opens a subfolder without following a link. Returns an empty descriptor on failure.
Descriptor open_folder(const Descriptor& parent, const std::string& name) {
    return Descriptor(
        ::openat(parent.number(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Opens the directory. Rejects one where any user can replace folders, because later checks would
/// be void. Trusts the members of a Unix group that shares the directory.
Descriptor open_directory(const fs::path& directory) {
    Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened.is_open()) fail_with_errno(directory, "open");
    struct stat status {};
    if (::fstat(opened.number(), &status) != 0) fail_with_errno(directory, "inspect");
    const bool is_open_to_all = (status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0;
    if (is_open_to_all) fail(directory, "can be written by all users and has no sticky bit");
    return opened;
}

Descriptor open_own_folder(const Descriptor& parent, const fs::path& path) {
    const std::string name = path.filename();
    if (::mkdirat(parent.number(), name.c_str(), 0700) != 0 && errno != EEXIST) {
        fail_with_errno(path, "create");
    }
    Descriptor folder = open_folder(parent, name);
    if (!folder.is_open()) fail_with_errno(path, "open");
    struct stat status {};
    if (::fstat(folder.number(), &status) != 0) fail_with_errno(path, "inspect");
    if (status.st_uid != ::geteuid()) fail(path, "belongs to another user");
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) fail(path, "can be written by other users");
    return folder;
}

std::vector<std::string> names_in(const Descriptor& folder, const fs::path& path) {
    const int own = ::openat(folder.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own < 0) fail_with_errno(path, "open");
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(own), ::closedir);
    if (entries == nullptr) {
        ::close(own);
        fail_with_errno(path, "list");
    }
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(entries.get())) {
        const std::string name = entry->d_name;
        if (name != "." && name != "..") names.push_back(name);
    }
    if (errno != 0) fail_with_errno(path, "list");
    return names;
}

bool is_regular(const Descriptor& folder, const std::string& name, std::int64_t* bytes = nullptr) {
    struct stat status {};
    if (::fstatat(folder.number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
    if (bytes != nullptr) *bytes = status.st_size;
    return S_ISREG(status.st_mode);
}

bool exists(const Descriptor& folder, const std::string& name) {
    struct stat status {};
    return ::fstatat(folder.number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

void remove_file(const Descriptor& folder, const std::string& name) {
    if (is_regular(folder, name)) ::unlinkat(folder.number(), name.c_str(), 0);
}

/// Returns whether a name has the pattern of storage::PendingPath and write_file_durably().
bool is_temporary(const std::string& name) {
    return name.starts_with('.') && name.ends_with(".tmp");
}

/// Returns whether a name has plan_packs()'s pattern for packs, or that of their indexes.
bool is_pack_name(std::string_view name) {
    constexpr std::string_view kPack = "pack-";
    if (!name.starts_with(kPack)) return false;
    if (name.ends_with(kIndexSuffix)) name.remove_suffix(std::strlen(kIndexSuffix));
    name.remove_prefix(kPack.size());
    return name.size() >= 6 && name.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Removes temporary files, packs with a valid index unless `is_kept` selects them, and other files
/// with names of packs.
template <typename Predicate>
void remove_own_files(const Descriptor& folder, const fs::path& path, const Predicate& is_kept) {
    for (const std::string& name : names_in(folder, path)) {
        if (is_temporary(name)) remove_file(folder, name);
        if (!name.ends_with(kIndexSuffix)) {
            if (is_pack_name(name) && !exists(folder, name + kIndexSuffix)) {
                remove_file(folder, name);
            }
            continue;
        }
        if (!is_regular(folder, name)) continue;
        const std::string pack = name.substr(0, name.size() - std::strlen(kIndexSuffix));
        const auto index = read_index(path / pack);
        if (index ? is_kept(pack, *index) : !is_pack_name(name)) continue;
        remove_file(folder, pack);  // first, because the index identifies the pack as ours
        remove_file(folder, name);
    }
}

}  // namespace

fs::path stage_path(const fs::path& directory) {
    return directory / fmt::format("hpcai500-stage-{}", ::geteuid());
}

StageFolder::StageFolder(const fs::path& directory)
    : path_(stage_path(directory)),
      folder_(open_own_folder(open_directory(directory), path_)),
      marker_(::openat(folder_.number(), kMarker, kMarkerFlags)) {
    if (!marker_.is_open() && errno == ENOENT) make_marker();
    if (!marker_.is_open()) fail_with_errno(path_ / kMarker, "open");
    const std::string text = marker_text();
    std::string found(text.size() + 1, '\0');
    const ssize_t count = ::pread(marker_.number(), found.data(), found.size(), 0);
    found.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    if (found != text) {
        fail(path_, fmt::format("has a {} that is damaged or from another version; remove the "
                                "folder or choose another directory",
                                kMarker));
    }
}

/// Writes a temporary file and links it to the marker's name; the first of several processes wins.
void StageFolder::make_marker() {
    if (!std::ranges::all_of(names_in(folder_, path_), is_temporary)) {
        marker_ = Descriptor(::openat(folder_.number(), kMarker, kMarkerFlags));
        if (marker_.is_open()) return;  // another process has just created it
        fail(path_, fmt::format("is not a staging folder of this program: it has files but no {}",
                                kMarker));
    }
    const std::string text = marker_text();
    const std::string name = fmt::format(".{}.{:08x}.tmp", kMarker, std::random_device()());
    const Descriptor file(::openat(folder_.number(), name.c_str(),
                                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.is_open()) fail_with_errno(path_ / kMarker, "create");
    int error = 0;
    if (::write(file.number(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        ::fsync(file.number()) != 0 ||
        ::linkat(folder_.number(), name.c_str(), folder_.number(), kMarker, 0) != 0) {
        error = errno;
    }
    ::unlinkat(folder_.number(), name.c_str(), 0);
    ::fsync(folder_.number());  // a staging folder without its marker cannot be used
    marker_ = Descriptor(::openat(folder_.number(), kMarker, kMarkerFlags));
    if (marker_.is_open()) return;  // this or another process made it
    if (error != 0) errno = error;  // otherwise, errno is that of openat
    fail_with_errno(path_ / kMarker, "write");
}

bool StageFolder::lock(short type) {
    struct flock range {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    if (::fcntl(marker_.number(), F_OFD_SETLK, &range) == 0) return true;
    if (errno != EAGAIN && errno != EACCES) fail_with_errno(path_ / kMarker, "lock");
    return false;
}

bool StageFolder::lock_exclusive() {
    struct stat status {};
    return lock(F_WRLCK) && ::fstat(marker_.number(), &status) == 0 && status.st_nlink > 0;
}

bool StageFolder::lock_shared() {
    return lock(F_RDLCK);
}

void StageFolder::unlock() {
    lock(F_UNLCK);
}

std::vector<std::byte> StageFolder::prepare(const std::string& set,
                                            const std::vector<Pack>& packs) {
    const fs::path path = path_ / set;
    const Descriptor folder = open_own_folder(folder_, path);
    std::map<std::string, std::size_t> planned;
    for (std::size_t i = 0; i < packs.size(); ++i) planned.emplace(packs[i].name, i);
    std::vector<std::byte> is_staged(packs.size());
    remove_own_files(folder, path, [&](const std::string& name, const PackIndex& index) {
        const auto found = planned.find(name);
        std::int64_t bytes = 0;
        if (found == planned.end() || !index.matches(packs[found->second]) ||
            !is_regular(folder, name, &bytes) || bytes != packs[found->second].bytes) {
            return false;
        }
        is_staged[found->second] = std::byte{1};
        return true;
    });
    for (std::size_t i = 0; i < packs.size(); ++i) {
        if (is_staged[i] != std::byte{0}) continue;
        const std::string index = packs[i].name + kIndexSuffix;
        if (is_regular(folder, index)) {  // an index that became unreadable
            remove_file(folder, packs[i].name);
            remove_file(folder, index);
        }
        for (const std::string& name : {packs[i].name, index}) {
            if (!exists(folder, name)) continue;
            fail(path / name,
                 "may belong to another program; remove it or choose another directory");
        }
    }
    return is_staged;
}

std::int64_t StageFolder::free_bytes() const {
    struct statvfs status {};
    if (::fstatvfs(folder_.number(), &status) != 0) fail_with_errno(path_, "get the free space of");
    // Some file systems report 2^64 bytes.
    return static_cast<std::int64_t>(std::min<std::uint64_t>(
        status.f_bavail * status.f_frsize, std::numeric_limits<std::int64_t>::max()));
}

void StageFolder::mark_running(int node_ranks) {
    remove_marks();
    for (int rank = 0; rank < node_ranks; ++rank) {
        const std::string name = fmt::format("{}{}", kRunning, rank);
        const Descriptor file(::openat(folder_.number(), name.c_str(),
                                       O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!file.is_open()) fail_with_errno(path_ / name, "create");
    }
}

void StageFolder::mark_completed(int node_rank) {
    const std::string name = fmt::format("{}{}", kRunning, node_rank);
    if (::unlinkat(folder_.number(), name.c_str(), 0) != 0) fail_with_errno(path_ / name, "remove");
}

bool StageFolder::all_completed() const {
    return std::ranges::none_of(names_in(folder_, path_),
                                [](const std::string& name) { return name.starts_with(kRunning); });
}

void StageFolder::remove_marks() const {
    for (const std::string& name : names_in(folder_, path_)) {
        if (name.starts_with(kRunning) || is_temporary(name)) remove_file(folder_, name);
    }
}

void StageFolder::remove() noexcept {
    try {
        bool is_empty = true;
        for (const char* set : kSetNames) {
            const Descriptor folder = open_folder(folder_, set);
            if (folder.is_open()) {
                remove_own_files(folder, path_ / set, [](const auto&...) { return false; });
            }
            is_empty = (::unlinkat(folder_.number(), set, AT_REMOVEDIR) == 0 || errno == ENOENT) &&
                       is_empty;
        }
        remove_marks();
        if (!is_empty || names_in(folder_, path_).size() != 1) return;
        ::unlinkat(folder_.number(), kMarker, 0);
        ::rmdir(path_.c_str());
    } catch (const std::exception&) {  // the next run removes the rest
    }
}

}  // namespace hpcai::data::staging

namespace hpcai::data {

StagingLock::StagingLock(std::unique_ptr<State> state) : state_(std::move(state)) {}

StagingLock::~StagingLock() {
    release(false);
}

std::int64_t StagingLock::lost_copies() const {
    return state_ == nullptr ? 0 : state_->lost_copies->load();
}

void StagingLock::release(bool completed) noexcept {
    const std::unique_ptr<State> state = std::move(state_);
    if (state == nullptr) return;
    try {
        if (completed) state->folder.mark_completed(state->node_rank);
        // Unlock first, so that one of two simultaneous calls gets the exclusive lock.
        state->folder.unlock();
        if (!state->folder.lock_exclusive()) return;  // other ranks of the node still read
        const bool all_completed = completed && state->folder.all_completed();
        const auto cleanup_now = all_completed ? config::StagingCleanup::remove_on_success
                                               : config::StagingCleanup::remove_on_failure;
        if (state->cleanup == config::StagingCleanup::remove || state->cleanup == cleanup_now) {
            state->folder.remove();
        }
    } catch (const std::exception&) {  // the copies stay, which only costs space
    }
}

}  // namespace hpcai::data
