// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <unordered_map>

#include <hpcai/data/image_codec.hpp>
#include <hpcai/data/staging_lock.hpp>

namespace hpcai::data {

/// Upper bound for the file of an image with legal dimensions.
inline constexpr std::int64_t kMaxPictureBytes = std::int64_t{512} << 20;

/// Reads an image file. Throws DecodeError if it cannot be read, is not a regular file, or has
/// more than kMaxPictureBytes bytes.
std::vector<std::uint8_t> read_picture(const std::filesystem::path& path);

/// Reads the copy of the sample in `staged`, or the file at `path` if there is none.
std::vector<std::uint8_t> read_picture(const StagedPictures* staged, std::uint32_t sample,
                                       const std::filesystem::path& path);

inline std::span<std::uint8_t> as_u8(std::span<std::byte> pixels) {
    return {reinterpret_cast<std::uint8_t*>(pixels.data()), pixels.size()};
}

/// Returns decode(). After a DecodeError, fills the pixels with grey and returns the reason.
template <typename Decode>
std::string decode_or_grey(std::span<std::uint8_t> pixels, const Decode& decode) {
    constexpr std::uint8_t kGrey = 128;
    try {
        return decode();
    } catch (const DecodeError& error) {
        std::fill(pixels.begin(), pixels.end(), kGrey);
        return error.what();
    }
}

/// Returns how the size of an image differs from its annotation; "" if it does not.
std::string size_mismatch(ImageSize annotated, ImageSize found);

/// Returns whether a path from a file is relative and stays below its folder.
inline bool is_path_below(const std::string& path) {
    const std::filesystem::path parsed(path);
    if (path.empty() || parsed.is_absolute() || path.find('\0') != std::string::npos) return false;
    for (const std::filesystem::path& part : parsed) {
        if (part == "..") return false;
    }
    return true;
}

inline std::size_t bytes_of(const std::vector<std::byte>& fields) {
    return fields.size();
}
inline std::size_t bytes_of(const DecodedImage& decoded) {
    return decoded.image.pixels.size();
}

/// Caches samples until their bytes_of() reach the budget. Never evicts a sample. Thread-safe.
template <typename Value>
class SampleCache {
public:
    explicit SampleCache(std::size_t budget_bytes) : budget_bytes_(budget_bytes) {}

    /// Returns the cached sample, or make() if there is none. Propagates exceptions of make().
    template <typename Make>
    std::shared_ptr<const Value> get(std::uint32_t sample, const Make& make) {
        {
            const std::lock_guard lock(mutex_);
            const auto found = entries_.find(sample);
            if (found != entries_.end()) return found->second;
        }
        auto value = std::make_shared<const Value>(make());
        const std::size_t bytes = bytes_of(*value);
        const std::lock_guard lock(mutex_);
        if (used_bytes_ + bytes <= budget_bytes_ && entries_.emplace(sample, value).second) {
            used_bytes_ += bytes;
        }
        return value;
    }

private:
    const std::size_t budget_bytes_;
    std::mutex mutex_;
    std::size_t used_bytes_ = 0;
    std::unordered_map<std::uint32_t, std::shared_ptr<const Value>> entries_;
};

}  // namespace hpcai::data
