// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "formula.hpp"

/// Weights and images of a detector as formulas of integer hashes. They have the same bits in
/// scripts/reference/faster_rcnn_cases.py, which documents their purpose.
namespace hpcai::parity {

inline constexpr std::int64_t kDetectorChannels = 16;
inline constexpr int kDetectorShift = 10;

/// Formula of parameters that no normalization follows.
struct HeadFormula {
    std::string_view part;   // part of their names
    double spread = 0;       // of the weights, relative to the inputs of an element
    bool is_paired = false;  // two neighbouring inputs have opposite weights
    bool has_shift = false;  // the bias opens or closes its ReLU
};

/// Returns null for parameters of the backbone's body.
inline const HeadFormula* head_formula(std::string_view name) {
    static constexpr std::array<HeadFormula, 9> kHeads{{{"inner_blocks", 4, true, false},
                                                        {"layer_blocks", 3, false, false},
                                                        {"rpn.head.conv", 1, false, true},
                                                        {"rpn.head.cls_logits", 9, true, false},
                                                        {"rpn.head.bbox_pred", 0.25, true, false},
                                                        {"fc6", 0.75, false, true},
                                                        {"fc7", 4, true, true},
                                                        {"cls_score", 12, true, false},
                                                        {"box_predictor", 4, true, false}}};
    for (const HeadFormula& head : kHeads) {
        if (contains(name, head.part)) return &head;
    }
    return nullptr;
}

/// Returns parameter `name` in torchvision's order of elements: (K, C, R, S), (F, C) or (C).
inline std::vector<float> detector_parameter(std::string_view name,
                                             const std::vector<std::int64_t>& shape) {
    std::size_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
    const Hashes hashes(name);
    const HeadFormula* head = head_formula(name);
    const auto shift = [&](std::size_t i) {
        const int sign = i / 2 % 4 == 3 ? -1 : 1;
        return hashes.uniform(i - i % 2) / 8 + sign * kDetectorShift;
    };
    const double inputs = static_cast<double>(count) / static_cast<double>(shape[0]);
    const double size = contains(name, ".bn3.") ? 0.25 : 1;
    const double head_bound = head != nullptr ? std::sqrt(head->spread / inputs) : 0;
    const double body_bound =
        shape.size() == 4 ? std::sqrt(6 / static_cast<double>(shape[0] * shape[2] * shape[3])) : 0;
    const auto value = [&](std::size_t i) {
        if (shape.size() == 1) {
            if (head != nullptr) return head->has_shift ? shift(i) : hashes.uniform(i) / 8;
            return (name.ends_with("bias") ? shift(i) : 1 + hashes.uniform(i) / 8) * size;
        }
        if (head == nullptr) return hashes.uniform(i) * body_bound;
        if (!head->is_paired) return hashes.uniform(i) * head_bound;
        return hashes.uniform(i - i % 2) * (i % 2 == 0 ? 1 : -1) * head_bound;
    };
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(value(i));
    return values;
}

/// Returns images `number` (N, H, W, C): squares of 32 and of 8 pixels with noise.
inline std::vector<float> detector_images(int number, std::int64_t batch, std::int64_t height,
                                          std::int64_t width) {
    struct Part {
        Hashes hashes;
        std::int64_t side;
        std::uint32_t times;
    };
    const Part parts[] = {{Hashes(fmt::format("blobs {}", number)), 32, 2},
                          {Hashes(fmt::format("squares {}", number)), 8, 1},
                          {Hashes(fmt::format("grain {}", number)), 1, 1}};
    std::vector<float> images;
    images.reserve(static_cast<std::size_t>(batch * height * width * kDetectorChannels));
    for (std::int64_t row = 0; row < batch * height; ++row) {
        const std::int64_t n = row / height, y = row % height;
        for (std::int64_t x = 0; x < width; ++x) {
            for (std::int64_t c = 0; c < kDetectorChannels; ++c) {
                std::uint32_t total = 0;
                for (const Part& part : parts) {
                    const std::int64_t line = n * (height / part.side) + y / part.side;
                    const std::int64_t square = line * (width / part.side) + x / part.side;
                    const auto index = static_cast<std::size_t>(square * kDetectorChannels + c);
                    total += part.times * (part.hashes(index) >> 24);
                }
                images.push_back(static_cast<float>(total) / 256 - 2);
            }
        }
    }
    return images;
}

}  // namespace hpcai::parity
