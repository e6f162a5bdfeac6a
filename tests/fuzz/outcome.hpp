// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <unistd.h>

#include <hpcai/base/error.hpp>
#include <hpcai/storage/file.hpp>

/// Functions that the targets share. A target passes bytes to a reader; an exception, a signal or a
/// sanitizer's report is a finding.
namespace hpcai::fuzz {

/// The outcomes of reading one input.
struct Readings {
    int made = 0;
    int refused = 0;
    std::string refusal = {};  // the last one
};

/// The readings of the input that runs or has run; a target has one thread.
Readings& readings();

/// Runs `read`. A refusal of the input is a legal outcome; an Error(internal), by which the program
/// accuses itself, and any other exception are not, and pass.
template <typename Read>
void refusing(const Read& read) {
    ++readings().made;
    try {
        read();
    } catch (const Error& error) {
        if (error.code() == ExitCode::internal) throw;
        ++readings().refused;
        readings().refusal = error.what();
    }
}

/// Ends the process as a crash unless `condition` holds.
inline void expect(bool condition) {
    if (!condition) std::abort();
}

/// Returns the result of `read` for a text that the program wrote; a rejection is a finding.
template <typename Read>
auto accepting(const Read& read) {
    try {
        return read();
    } catch (const Error& error) {
        throw Error(ExitCode::internal,
                    std::string("what was written is refused: ") + error.what());
    }
}

/// Whether a printed text has no control characters but line breaks.
inline bool is_plain(std::string_view text) {
    return std::ranges::none_of(
        text, [](char letter) { return letter >= 0 && letter < ' ' && letter != '\n'; });
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

inline storage::Bytes bytes_of(const std::uint8_t* data, std::size_t size) {
    return std::as_bytes(std::span(data, size));
}

/// A folder of this process in memory where there is one, removed at its end.
class Scratch {
public:
    Scratch() {
        const std::filesystem::path memory = "/dev/shm";
        const auto base =
            std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
        folder_ = base / ("hpcai500_fuzz_" + std::to_string(::getpid()));
        std::filesystem::create_directories(folder_);
    }
    ~Scratch() { std::filesystem::remove_all(folder_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    const std::filesystem::path& folder() const { return folder_; }
    /// The path of a file of that name with those bytes.
    std::filesystem::path write(const char* name, std::string_view bytes) const;

private:
    std::filesystem::path folder_;
};

}  // namespace hpcai::fuzz
