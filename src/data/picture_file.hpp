// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <unordered_map>

#include <hpcai/data/image_codec.hpp>
#include <hpcai/data/sample_index.hpp>
#include <hpcai/data/staging.hpp>
#include <hpcai/storage/file.hpp>

namespace hpcai::data {

/// Reads an image file. Throws DecodeError if it cannot be read, is not a regular file, or has
/// more than kMaxPictureBytes bytes.
std::vector<std::uint8_t> read_picture(const std::filesystem::path& path);

/// Returns the copy of the sample in `staged`, or read_source() if there is none.
template <typename ReadSource>
std::vector<std::uint8_t> read_picture(const StagedPictures* staged, std::uint32_t sample,
                                       const ReadSource& read_source) {
    if (staged != nullptr) {
        if (auto bytes = staged->read(sample)) return std::move(*bytes);
    }
    return read_source();
}

/// The image files of an index. A shard (tar file) is opened when it is first needed. Thread-safe.
class IndexedPictures {
public:
    /// `index` must outlive the object.
    explicit IndexedPictures(const SampleIndex& index)
        : index_(index), shards_(std::make_unique<OpenShard[]>(index.shards.size())) {}

    /// Throws DecodeError like read_picture(path), also if the shard ends early.
    std::vector<std::uint8_t> read(std::size_t sample) const;

private:
    struct OpenShard {
        std::once_flag once;
        storage::Descriptor file{-1};
    };

    const SampleIndex& index_;
    std::unique_ptr<OpenShard[]> shards_;
};

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

inline std::size_t bytes_of(const std::vector<std::byte>& fields) {
    return fields.size();
}
inline std::size_t bytes_of(const DecodedImage& decoded) {
    return decoded.image.pixels.size();
}

/// Caches a sample if its bytes_of() still fit in the budget. Never evicts a sample. Thread-safe.
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
