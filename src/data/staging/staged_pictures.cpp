// SPDX-License-Identifier: Apache-2.0
#include "staged_pictures.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include <fcntl.h>
#include <unistd.h>

#include <hpcai/data/jpeg.hpp>
#include <hpcai/storage/descriptor.hpp>
#include <hpcai/storage/sha256.hpp>

#include "pack_index.hpp"

namespace hpcai::data {

namespace {

struct Place {
    std::int32_t pack = -1;  // -1: in none
    std::uint32_t in_pack = 0;
    std::uint64_t offset = 0;  // bytes
    std::uint64_t bytes = 0;
};

struct OpenPack {
    std::filesystem::path path;
    std::once_flag once;
    std::vector<std::string> digests;  // once it was asked for
};

}  // namespace

struct StagedPictures::State {
    std::vector<Place> places;  // by sample
    std::unique_ptr<OpenPack[]> packs;
    std::vector<std::atomic<bool>> checked;  // by sample

    State(const std::filesystem::path& folder, const std::vector<staging::Pack>& planned,
          const staging::Source& source)
        : places(source.files),
          packs(std::make_unique<OpenPack[]>(planned.size())),
          checked(source.files) {
        for (std::size_t i = 0; i < planned.size(); ++i) {
            packs[i].path = folder / planned[i].name;
            Place place{static_cast<std::int32_t>(i)};
            for (const std::uint32_t file : planned[i].files) {
                place.bytes = static_cast<std::uint64_t>(source.facts[file].bytes);
                places[file] = place;
                place.offset += place.bytes;
                ++place.in_pack;
            }
        }
    }

    const std::string& digest_of(const Place& place) const {
        OpenPack& pack = packs[static_cast<std::size_t>(place.pack)];
        std::call_once(pack.once, [&] {
            if (auto index = staging::read_index(pack.path))
                pack.digests = std::move(index->digests);
        });
        if (place.in_pack >= pack.digests.size()) {
            throw DecodeError(
                fmt::format("its staged copy in '{}' has no index any more", pack.path.string()));
        }
        return pack.digests[place.in_pack];
    }
};

StagedPictures::StagedPictures(std::unique_ptr<State> state) : state_(std::move(state)) {}
StagedPictures::~StagedPictures() = default;

std::optional<std::vector<std::uint8_t>> StagedPictures::read(std::uint32_t sample) const {
    const Place& place = state_->places[sample];
    if (place.pack < 0) return std::nullopt;
    const std::filesystem::path& path = state_->packs[static_cast<std::size_t>(place.pack)].path;
    const storage::Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    std::vector<std::uint8_t> bytes(place.bytes);
    std::size_t filled = 0;
    while (file.open() && filled < bytes.size()) {
        const ssize_t got = ::pread(file.number(), bytes.data() + filled, bytes.size() - filled,
                                    static_cast<off_t>(place.offset + filled));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        filled += static_cast<std::size_t>(got);
    }
    if (!file.open() || filled < bytes.size()) {
        throw DecodeError(fmt::format("its staged copy in '{}' cannot be read: {}", path.string(),
                                      std::strerror(errno)));
    }
    std::atomic<bool>& checked = state_->checked[sample];
    if (checked.load(std::memory_order_relaxed)) return bytes;
    if (storage::sha256_hex(std::as_bytes(std::span(bytes))) != state_->digest_of(place)) {
        throw DecodeError(
            fmt::format("its staged copy in '{}' is damaged: its SHA-256 differs", path.string()));
    }
    checked.store(true, std::memory_order_relaxed);
    return bytes;
}

}  // namespace hpcai::data

namespace hpcai::data::staging {

std::shared_ptr<const StagedPictures> open_staged(const std::filesystem::path& folder,
                                                  const std::vector<Pack>& packs,
                                                  const Source& source) {
    return std::make_shared<StagedPictures>(
        std::make_unique<StagedPictures::State>(folder, packs, source));
}

}  // namespace hpcai::data::staging
