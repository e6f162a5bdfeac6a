// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <mutex>

#include <fcntl.h>
#include <unistd.h>

#include <hpcai/storage/descriptor.hpp>
#include <hpcai/storage/sha256.hpp>

#include "pack_copy.hpp"
#include "pack_index.hpp"

namespace hpcai::data::staging {
namespace {

struct PackPlace {
    std::int32_t pack = -1;  // -1 if the file is in no pack
    std::uint32_t in_pack = 0;
    std::uint64_t offset = 0;  // bytes
    std::uint64_t bytes = 0;
};

using Digest = std::array<std::uint8_t, 32>;  // half the size of text, as there may be millions

Digest digest_of(const std::string& text) {
    Digest digest{};
    for (std::size_t i = 0; i < digest.size(); ++i) {
        std::from_chars(&text[2 * i], &text[2 * i] + 2, digest[i], 16);
    }
    return digest;
}

struct OpenPack {
    std::filesystem::path path;
    std::once_flag once;
    std::vector<std::optional<Digest>> digests;  // read on first use
};

enum class Copy : std::uint8_t { not_compared, sound, none };

/// Reads `bytes` bytes, or returns nothing.
std::optional<std::vector<std::uint8_t>> read_part(const std::filesystem::path& path,
                                                   std::uint64_t offset, std::uint64_t bytes) {
    const storage::Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!file.is_open()) return std::nullopt;
    if (::lseek(file.number(), static_cast<off_t>(offset), SEEK_SET) < 0) return std::nullopt;
    std::vector<std::uint8_t> part(bytes);
    if (storage::try_read(file, std::as_writable_bytes(std::span(part))) != bytes) {
        return std::nullopt;
    }
    return part;
}

class PackedPictures final : public StagedPictures {
public:
    PackedPictures(const std::filesystem::path& folder, const std::vector<Pack>& planned,
                   const Source& source, std::shared_ptr<std::atomic<std::int64_t>> lost)
        : places_(source.files),
          packs_(std::make_unique<OpenPack[]>(planned.size())),
          copies_(source.files),
          lost_(std::move(lost)) {
        for (std::size_t i = 0; i < planned.size(); ++i) {
            packs_[i].path = folder / planned[i].name;
            PackPlace place{static_cast<std::int32_t>(i)};
            for (const std::uint32_t file : planned[i].files) {
                place.bytes = static_cast<std::uint64_t>(source.facts[file].bytes);
                places_[file] = place;
                place.offset += place.bytes;
                ++place.in_pack;
            }
        }
    }

    std::optional<std::vector<std::uint8_t>> read(std::uint32_t sample) const override {
        const PackPlace& place = places_[sample];
        std::atomic<Copy>& copy = copies_[sample];
        const Copy known = copy.load(std::memory_order_relaxed);
        if (place.pack < 0 || known == Copy::none) return std::nullopt;

        OpenPack& pack = packs_[place.pack];
        auto bytes = read_part(pack.path, place.offset, place.bytes);
        if (known == Copy::sound && bytes) return bytes;
        const std::vector<std::optional<Digest>>& digests = digests_of(pack);
        const bool is_listed = place.in_pack < digests.size();
        const bool was_left = is_listed && !digests[place.in_pack];
        if (known == Copy::not_compared && bytes && is_listed && !was_left &&
            digest_of(storage::sha256_hex(std::as_bytes(std::span(*bytes)))) ==
                digests[place.in_pack]) {
            copy.store(Copy::sound, std::memory_order_relaxed);
            return bytes;
        }
        if (copy.exchange(Copy::none) != Copy::none && !was_left) ++*lost_;
        return std::nullopt;
    }

private:
    /// Returns the digests by position in the pack, without a value for a file that is not staged.
    const std::vector<std::optional<Digest>>& digests_of(OpenPack& pack) const {
        std::call_once(pack.once, [&] {
            const auto index = read_index(pack.path);
            if (!index) return;
            for (const std::string& text : index->digests) {
                pack.digests.push_back(text.empty() ? std::nullopt
                                                    : std::optional(digest_of(text)));
            }
        });
        return pack.digests;
    }

    std::vector<PackPlace> places_;  // by sample
    std::unique_ptr<OpenPack[]> packs_;
    mutable std::vector<std::atomic<Copy>> copies_;  // by sample
    std::shared_ptr<std::atomic<std::int64_t>> lost_;
};

}  // namespace

std::shared_ptr<const StagedPictures> open_staged(const std::filesystem::path& folder,
                                                  const std::vector<Pack>& packs,
                                                  const Source& source,
                                                  std::shared_ptr<std::atomic<std::int64_t>> lost) {
    return std::make_shared<PackedPictures>(folder, packs, source, std::move(lost));
}

}  // namespace hpcai::data::staging
