// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csetjmp>
#include <type_traits>

#include <hpcai/data/image_codec.hpp>

/// What read_image_size() and decode_image() call for a file that begins like the format.
namespace hpcai::data {

/// Calls of a C library that reports errors by a callback, which must not return.
class LibraryCalls {
public:
    /// Runs `step` and returns whether no call failed. `step` must not own anything, because a
    /// failure exits it by longjmp.
    template <typename Step>
    bool succeed(const Step& step) {
        static_assert(std::is_trivially_destructible_v<Step>);
        if (setjmp(jump_) != 0) return false;
        step();
        return true;
    }
    [[noreturn]] void fail(const char* reason) {
        message_ = reason;
        std::longjmp(jump_, 1);
    }
    void warn(const char* text) {
        if (message_.empty()) message_ = text;
    }
    /// Returns the error or the first warning, or "".
    const std::string& message() const { return message_; }

private:
    std::jmp_buf jump_{};
    std::string message_;
};

/// Throws DecodeError for a size above kMaxImageSide or kMaxImagePixels.
ImageSize legal_size(std::int64_t width, std::int64_t height);

ImageSize read_jpeg_size(std::span<const std::uint8_t> bytes);
ImageSize read_png_size(std::span<const std::uint8_t> bytes);
DecodedImage decode_jpeg(std::span<const std::uint8_t> bytes, const DecodeRequest& request);
DecodedImage decode_png(std::span<const std::uint8_t> bytes);

}  // namespace hpcai::data
