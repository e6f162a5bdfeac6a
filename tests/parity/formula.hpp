// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

/// Weights, images and labels as formulas of integer hashes. They have the same bits in
/// scripts/reference/resnet50_cases.py, which documents their purpose.
namespace hpcai::parity {

inline constexpr std::int64_t kBatch = 8;
inline constexpr std::int64_t kClasses = 1000;

/// The hash named `name` of element `index`: MurmurHash3's finalizer of index x golden ratio +
/// FNV-1a's hash of the name.
class Hashes {
public:
    explicit Hashes(std::string_view name) {
        for (const char byte : name) {
            start_ = (start_ ^ static_cast<std::uint8_t>(byte)) * 0x01000193u;
        }
    }
    std::uint32_t operator()(std::size_t index) const {
        std::uint32_t word = static_cast<std::uint32_t>(index) * 0x9E3779B9u + start_;
        word = (word ^ word >> 16) * 0x85EBCA6Bu;
        word = (word ^ word >> 13) * 0xC2B2AE35u;
        return word ^ word >> 16;
    }
    /// A multiple of 2^-23 in [-1, 1).
    double uniform(std::size_t index) const { return ((*this)(index) >> 8) * 0x1p-23 - 1; }

private:
    std::uint32_t start_ = 0x811C9DC5u;
};

enum class Kind { ordinary, open };

inline std::string_view name_of(Kind kind) {
    return kind == Kind::open ? "open" : "ordinary";
}

inline bool contains(std::string_view name, std::string_view part) {
    return name.find(part) != std::string_view::npos;
}

/// Returns the factor of scales and shifts of normalization `name`.
inline double size_of_norm(std::string_view name, Kind kind) {
    const double size = contains(name, ".bn3.") ? 0.25 : 1;
    const bool feature =
        name.starts_with("layer4.") && (contains(name, ".bn3.") || contains(name, ".downsample."));
    return kind == Kind::open && feature ? size / 32 : size;
}

/// Returns parameter `name` in torchvision's order of elements: (K, C, R, S), (F, C) or (C).
inline std::vector<float> parameter(std::string_view name, const std::vector<std::int64_t>& shape,
                                    Kind kind) {
    std::size_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
    const Hashes hashes(name);
    const bool open = kind == Kind::open;
    const auto value = [&](std::size_t i) {
        const double u = hashes.uniform(i);
        if (name == "fc.weight") {
            return u * std::sqrt((open ? 192 : 3) / static_cast<double>(shape[1]));
        }
        if (name == "fc.bias") return u / 8;
        if (name.ends_with(".weight")) return (1 + u / 8) * size_of_norm(name, kind);
        const double shift = open ? (i % 4 == 3 ? -6 : 6) : 0;
        return (u / 8 + shift) * size_of_norm(name, kind);
    };
    std::vector<float> values(count);
    if (shape.size() == 4) {
        const double bound = std::sqrt(6 / static_cast<double>(shape[0] * shape[2] * shape[3]));
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = static_cast<float>(hashes.uniform(i) * bound);
        }
    } else {
        for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(value(i));
    }
    return values;
}

/// Returns batch `number`: squares of 8 pixels with noise.
inline std::vector<std::uint8_t> pictures(int number, std::int64_t side,
                                          std::int64_t batch = kBatch) {
    const Hashes squares(fmt::format("squares {}", number));
    const Hashes grain(fmt::format("grain {}", number));
    const std::int64_t per_side = (side + 7) / 8;
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(batch * side * side * 3));
    for (std::size_t i = 0; i < pixels.size(); ++i) {
        const auto element = static_cast<std::int64_t>(i);
        const std::int64_t c = element % 3, x = element / 3 % side;
        const std::int64_t y = element / 3 / side % side, n = element / 3 / side / side;
        const std::int64_t square = ((n * per_side + y / 8) * per_side + x / 8) * 3 + c;
        const std::uint32_t coarse = squares(static_cast<std::size_t>(square)) >> 24;
        pixels[i] = static_cast<std::uint8_t>((3 * coarse + (grain(i) >> 24)) >> 2);
    }
    return pixels;
}

inline std::vector<std::int32_t> labels(int number, std::int64_t batch = kBatch) {
    const Hashes hashes(fmt::format("labels {}", number));
    std::vector<std::int32_t> all(static_cast<std::size_t>(batch));
    for (std::size_t n = 0; n < all.size(); ++n) {
        all[n] = static_cast<std::int32_t>(hashes(n) % kClasses);
    }
    return all;
}

}  // namespace hpcai::parity
