// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <mutex>

#include <fcntl.h>
#include <unistd.h>

#include <hpcai/storage/sha256.hpp>

#include "pack_copy.hpp"

namespace hpcai::data::staging {
namespace {

/// The position of a source file in the packs.
struct PackPosition {
    std::int32_t pack = -1;  // -1 if no pack contains the file
    std::uint32_t index_in_pack = 0;
    std::int64_t offset = 0;  // bytes
    std::int64_t bytes = 0;
};

using Digest = std::array<std::uint8_t, 32>;  // binary, because there may be millions

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

enum class CopyState : std::uint8_t { unverified, verified, lost };

/// Returns `bytes` bytes from `offset` on, or nothing on failure.
std::optional<std::vector<std::uint8_t>> read_range(const std::filesystem::path& path,
                                                    std::int64_t offset, std::int64_t bytes) {
    const storage::Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!file.is_open()) return std::nullopt;
    std::vector<std::uint8_t> part(bytes);
    const auto read = storage::try_read(file, std::as_writable_bytes(std::span(part)), offset);
    return read == part.size() ? std::optional(std::move(part)) : std::nullopt;
}

class PackedPictures final : public StagedPictures {
public:
    PackedPictures(const std::filesystem::path& folder, const std::vector<Pack>& planned,
                   const Source& source, std::shared_ptr<std::atomic<std::int64_t>> lost_copies)
        : positions_(source.files),
          packs_(std::make_unique<OpenPack[]>(planned.size())),
          copies_(source.files),
          lost_copies_(std::move(lost_copies)) {
        for (std::size_t i = 0; i < planned.size(); ++i) {
            packs_[i].path = folder / planned[i].name;
            PackPosition position{static_cast<std::int32_t>(i)};
            for (const std::uint32_t file : planned[i].files) {
                position.bytes = source.metadata[file].bytes;
                positions_[file] = position;
                position.offset += position.bytes;
                ++position.index_in_pack;
            }
        }
    }

    std::optional<std::vector<std::uint8_t>> read(std::uint32_t sample) const override {
        const PackPosition& position = positions_[sample];
        std::atomic<CopyState>& copy = copies_[sample];
        const CopyState state = copy.load(std::memory_order_relaxed);
        if (position.pack < 0 || state == CopyState::lost) return std::nullopt;

        OpenPack& pack = packs_[position.pack];
        auto bytes = read_range(pack.path, position.offset, position.bytes);
        if (state == CopyState::verified && bytes) return bytes;
        const std::vector<std::optional<Digest>>& digests = digests_of(pack);
        const bool is_listed = position.index_in_pack < digests.size();
        const bool is_omitted = is_listed && !digests[position.index_in_pack];
        if (state == CopyState::unverified && bytes && is_listed && !is_omitted &&
            digest_of(storage::sha256_hex(std::as_bytes(std::span(*bytes)))) ==
                digests[position.index_in_pack]) {
            copy.store(CopyState::verified, std::memory_order_relaxed);
            return bytes;
        }
        if (copy.exchange(CopyState::lost) != CopyState::lost && !is_omitted) ++*lost_copies_;
        return std::nullopt;
    }

private:
    /// Returns the digests by position in the pack; a file that is not staged has no value.
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

    std::vector<PackPosition> positions_;  // by sample
    std::unique_ptr<OpenPack[]> packs_;
    mutable std::vector<std::atomic<CopyState>> copies_;  // by sample
    std::shared_ptr<std::atomic<std::int64_t>> lost_copies_;
};

}  // namespace

std::shared_ptr<const StagedPictures> open_staged(
    const std::filesystem::path& folder, const std::vector<Pack>& packs, const Source& source,
    std::shared_ptr<std::atomic<std::int64_t>> lost_copies) {
    return std::make_shared<PackedPictures>(folder, packs, source, std::move(lost_copies));
}

}  // namespace hpcai::data::staging
