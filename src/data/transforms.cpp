// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <hpcai/data/transforms.hpp>

namespace hpcai::data {
namespace {

constexpr double kMinRatio = 3.0 / 4.0;  // width / height
constexpr double kMaxRatio = 4.0 / 3.0;
constexpr int kAttempts = 10;

/// Rounds like Python's round(): halves to even, which is the default rounding mode.
int round_half_even(double value) {
    return static_cast<int>(std::lrint(value));
}

std::optional<PixelBox> attempt_crop(ImageSize size, double area_minimum, CounterStream& random) {
    const double area = static_cast<double>(size.width) * size.height;
    const double wanted = area * (area_minimum + (1.0 - area_minimum) * random.uniform());
    const double log_low = std::log(kMinRatio);
    const double log_high = std::log(kMaxRatio);
    const double ratio = std::exp(log_low + (log_high - log_low) * random.uniform());
    const int width = round_half_even(std::sqrt(wanted * ratio));
    const int height = round_half_even(std::sqrt(wanted / ratio));
    if (width <= 0 || width > size.width || height <= 0 || height > size.height) {
        return std::nullopt;
    }
    const auto top =
        static_cast<int>(random.below(static_cast<std::uint32_t>(size.height - height + 1)));
    const auto left =
        static_cast<int>(random.below(static_cast<std::uint32_t>(size.width - width + 1)));
    return PixelBox{left, top, width, height};
}

PixelBox central_crop(ImageSize size) {
    int width = size.width;
    int height = size.height;
    const double ratio = static_cast<double>(width) / height;
    if (ratio < kMinRatio) height = round_half_even(width / kMinRatio);
    if (ratio > kMaxRatio) width = round_half_even(height * kMaxRatio);
    return {(size.width - width) / 2, (size.height - height) / 2, width, height};
}

}  // namespace

TrainingView draw_training_view(ImageSize size, const Augmentation& augmentation,
                                CounterStream& random) {
    std::optional<PixelBox> crop;
    for (int i = 0; i < kAttempts && !crop; ++i) {
        crop = attempt_crop(size, augmentation.area_minimum, random);
    }
    TrainingView view;
    view.crop = crop ? *crop : central_crop(size);
    view.flip = random.uniform() < augmentation.flip_probability;
    view.vertical_flip = random.uniform() < augmentation.vertical_flip_probability;
    return view;
}

int largest_denominator(const PixelBox& crop, int image_size) {
    for (const int denominator : {8, 4, 2}) {
        if (std::min(crop.width, crop.height) >= denominator * image_size) return denominator;
    }
    return 1;
}

ResizeRequest evaluation_request(ImageSize size, int image_size) {
    const int shorter = round_half_even(image_size * 256.0 / 224.0);
    const bool wide = size.width > size.height;
    const int longer =
        static_cast<int>(static_cast<std::int64_t>(shorter) * std::max(size.width, size.height) /
                         std::min(size.width, size.height));
    ResizeRequest request;
    request.box = {0, 0, static_cast<float>(size.width), static_cast<float>(size.height)};
    request.width = wide ? longer : shorter;
    request.height = wide ? shorter : longer;
    request.window = {round_half_even((request.width - image_size) / 2.0),
                      round_half_even((request.height - image_size) / 2.0), image_size, image_size};
    return request;
}

void flip(std::span<std::uint8_t> pixels, ImageSize size, const TrainingView& view) {
    using Pixel = std::array<std::uint8_t, kImageChannels>;
    auto* const all = reinterpret_cast<Pixel*>(pixels.data());
    const std::ptrdiff_t width = size.width;
    for (int y = 0; view.flip && y < size.height; ++y) {
        std::reverse(all + y * width, all + (y + 1) * width);
    }
    for (int y = 0; view.vertical_flip && y < size.height / 2; ++y) {
        std::swap_ranges(all + y * width, all + (y + 1) * width,
                         all + (size.height - 1 - y) * width);
    }
}

}  // namespace hpcai::data
