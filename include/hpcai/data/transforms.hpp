// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/philox.hpp>
#include <hpcai/data/image.hpp>
#include <hpcai/data/image_codec.hpp>

namespace hpcai::data {

/// A resize, and the window of its result to compute.
struct ResizeRequest {
    RealBox box;      // part of the source that is resized to the target
    int width = 0;    // of the target, pixels
    int height = 0;   // of the target, pixels
    PixelBox window;  // part of the target that is computed
};

/// Returns a request that resizes the entire source to `width` x `height` pixels.
ResizeRequest full_resize_request(const ImageView& source, int width, int height);

/// Antialiased bilinear resize of 8-bit pixels, bitwise equal to Image.resize((width, height),
/// BILINEAR, box).crop(window) of Pillow up to version 12 (src/libImaging/Resample.c). Pillow 13
/// resizes tall images first vertically, so a value may differ by one. `target` is (window.height,
/// window.width, 3). Throws Error(internal) if the box or the window is empty, the box exceeds the
/// source, the window exceeds width x height, or `target` has another size.
void resize_bilinear(const ImageView& source, const ResizeRequest& request,
                     std::span<std::uint8_t> target);

/// The augmentation of training images.
struct Augmentation {
    double area_minimum = 0.08;              // of a crop, as a fraction of the image's area
    double flip_probability = 0.5;           // of swapping left and right
    double vertical_flip_probability = 0.0;  // of swapping top and bottom
};

/// One draw of the augmentation.
struct TrainingView {
    PixelBox crop;
    bool flip = false;
    bool vertical_flip = false;
};

/// Draws a crop whose area is uniform in [area_minimum, 1] of the image and whose width / height
/// is log-uniform in [3/4, 4/3]. After ten crops that do not fit, uses the largest central crop
/// with a ratio in this range. Then draws the flips (torchvision RandomResizedCrop.get_params,
/// RandomHorizontalFlip).
TrainingView draw_training_view(ImageSize size, const Augmentation& augmentation,
                                CounterStream& random);

/// Returns the largest of 8, 4, 2 that leaves `image_size` pixels or more per crop side, else 1.
int largest_denominator(const PixelBox& crop, int image_size);

/// Returns the request for evaluation: resizes the shorter side to round(image_size * 256 / 224)
/// and keeps the central image_size x image_size pixels (torchvision Resize and CenterCrop, with
/// their rounding).
ResizeRequest evaluation_request(ImageSize size, int image_size);

/// Mirrors pixels (size.height, size.width, 3) in place, according to the flips of `view`.
void flip(std::span<std::uint8_t> pixels, ImageSize size, const TrainingView& view);

}  // namespace hpcai::data
