// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <zlib.h>

/// PNG files of any content, also illegal ones.
namespace hpcai::data::test {

using Bytes = std::vector<std::uint8_t>;

inline void append_number(std::uint32_t number, Bytes& bytes) {
    for (const int shift : {24, 16, 8, 0}) {
        bytes.push_back(static_cast<std::uint8_t>(number >> shift));
    }
}

inline Bytes join(std::initializer_list<Bytes> parts) {
    Bytes all;
    for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

/// The bytes of pairs of digits, between which there may be blanks.
inline Bytes from_hex(std::string text) {
    std::erase(text, ' ');
    Bytes bytes;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        bytes.push_back(static_cast<std::uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
    }
    return bytes;
}

/// Length, type, content and checksum.
inline Bytes chunk(std::string_view type, const Bytes& content) {
    const Bytes checked = join({Bytes(type.begin(), type.end()), content});
    Bytes length, sum;
    append_number(static_cast<std::uint32_t>(content.size()), length);
    append_number(
        static_cast<std::uint32_t>(crc32(0, checked.data(), static_cast<unsigned>(checked.size()))),
        sum);
    return join({length, checked, sum});
}

inline Bytes deflated(const Bytes& bytes) {
    uLongf size = compressBound(bytes.size());
    Bytes packed(size);
    compress2(packed.data(), &size, bytes.data(), bytes.size(), Z_BEST_COMPRESSION);
    packed.resize(size);
    return packed;
}

struct Header {
    std::uint32_t width, height;
    std::uint8_t bits, colour_type, interlace = 0;
};

/// A file with these rows, each after the number of its filter, and `more` chunks before them.
inline Bytes png(const Header& header, const Bytes& rows, const Bytes& more = {}) {
    Bytes content;
    append_number(header.width, content);
    append_number(header.height, content);
    content = join({content, {header.bits, header.colour_type, 0, 0, header.interlace}});
    return join({{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'},
                 chunk("IHDR", content),
                 more,
                 chunk("IDAT", deflated(rows)),
                 chunk("IEND", {})});
}

}  // namespace hpcai::data::test
