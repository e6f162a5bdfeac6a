// SPDX-License-Identifier: Apache-2.0
#include "failing_disk.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/// Replaces functions of the C library, by linking or preloading: calls that change files below a
/// path that contains HPCAI500_DISK_FOLDER. From call number HPCAI500_DISK_CALL (from 1), the
/// process is killed (HPCAI500_DISK_FAULT is kill) or the disk is full (full), so that only half of
/// the data are written. Without these variables, calls are unchanged.
namespace {

std::atomic<std::int64_t> calls{0};  // of the process, which every call counts in

template <typename Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool is_below(int folder, const std::string& path) {
    const char* wanted = std::getenv("HPCAI500_DISK_FOLDER");
    if (wanted == nullptr) return false;
    char text[4096];
    const std::string link = "/proc/self/fd/" + std::to_string(folder);
    const ssize_t size = folder < 0 ? 0 : ::readlink(link.c_str(), text, sizeof text);
    return (std::string(text, size > 0 ? static_cast<std::size_t>(size) : 0) + "/" + path)
               .find(wanted) != std::string::npos;
}

enum class Fault { none, killed, full };

Fault fault_of_next_call(bool needs_room) {
    const char* number = std::getenv("HPCAI500_DISK_CALL");
    const char* kind = std::getenv("HPCAI500_DISK_FAULT");
    if (number == nullptr || kind == nullptr) return Fault::none;
    const std::int64_t after = ++calls - std::atoll(number);
    if (kind == std::string("kill")) return after == 0 ? Fault::killed : Fault::none;
    return after >= 0 && needs_room ? Fault::full : Fault::none;
}

int strike(Fault fault) {
    if (fault == Fault::killed) ::kill(::getpid(), SIGKILL);
    errno = ENOSPC;
    return -1;
}

/// Calls `real` unless the fault is due.
template <typename Real>
int change(int folder, const char* path, bool needs_room, const Real& real) {
    if (is_below(folder, path)) {
        if (const Fault fault = fault_of_next_call(needs_room); fault != Fault::none) {
            return strike(fault);
        }
    }
    return real();
}

}  // namespace

std::int64_t calls_of_failing_disk() {
    return calls;
}

extern "C" {

int open(const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    const auto real = [&] { return next<int(const char*, int, ...)>("open")(path, flags, mode); };
    return (flags & O_CREAT) != 0 ? change(-1, path, true, real) : real();
}

int openat(int folder, const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    const auto real = [&] {
        return next<int(int, const char*, int, ...)>("openat")(folder, path, flags, mode);
    };
    return (flags & O_CREAT) != 0 ? change(folder, path, true, real) : real();
}

ssize_t write(int file, const void* bytes, std::size_t count) {
    const auto real = next<ssize_t(int, const void*, std::size_t)>("write");
    if (is_below(file, "")) {
        if (const Fault fault = fault_of_next_call(true); fault != Fault::none) {
            real(file, bytes, count / 2);
            return strike(fault);
        }
    }
    return real(file, bytes, count);
}

// No test loses power, so no call needs to wait for the disk.
int fsync(int file) {
    return change(file, "", true,
                  [&] { return is_below(file, "") ? 0 : next<int(int)>("fsync")(file); });
}

int rename(const char* from, const char* to) noexcept {
    return change(-1, to, true,
                  [&] { return next<int(const char*, const char*)>("rename")(from, to); });
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
    return change(to_folder, to, true, [&] {
        return next<int(int, const char*, int, const char*, int)>("linkat")(from_folder, from,
                                                                            to_folder, to, flags);
    });
}

int mkdirat(int folder, const char* path, mode_t mode) noexcept {
    return change(folder, path, true, [&] {
        return next<int(int, const char*, mode_t)>("mkdirat")(folder, path, mode);
    });
}

int ftruncate(int file, off_t bytes) noexcept {
    return change(file, "", true, [&] { return next<int(int, off_t)>("ftruncate")(file, bytes); });
}

int unlink(const char* path) noexcept {
    return change(-1, path, false, [&] { return next<int(const char*)>("unlink")(path); });
}

int unlinkat(int folder, const char* path, int flags) noexcept {
    return change(folder, path, false, [&] {
        return next<int(int, const char*, int)>("unlinkat")(folder, path, flags);
    });
}

int rmdir(const char* path) noexcept {
    return change(-1, path, false, [&] { return next<int(const char*)>("rmdir")(path); });
}

}  // extern "C"
