// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/data/annotated_pictures.hpp>
#include <hpcai/data/bad_samples.hpp>
#include <hpcai/data/image.hpp>
#include <hpcai/data/sample_index.hpp>

namespace hpcai::data {

/// The result of decoding every image of a folder at full size.
struct FolderReport {
    std::vector<std::int64_t> samples_per_class;  // including bad ones
    std::vector<BadSample> bad;                   // path and reason, in index order
    std::vector<BadSample> warnings;              // good images: path and the decoder's warning
    /// Sides of good images in pixels: the shortest, the median of the shorter sides, the longest.
    std::int64_t smallest_side = 0, median_side = 0, largest_side = 0;  // 0 without good images
    std::int64_t pixels = 0;                                            // of good images
    /// Per channel over all pixels of good images, scaled to [0, 1]; 0 without good images.
    std::array<double, kImageChannels> mean{};
    std::array<double, kImageChannels> standard_deviation{};

    /// Returns ok, or data if a sample is bad.
    ExitCode exit_code() const { return bad.empty() ? ExitCode::ok : ExitCode::data; }
};

/// The result of decoding every image of an annotated set at full size.
struct AnnotationReport {
    std::vector<std::int64_t> boxes_per_class;
    std::int64_t pictures_without_box = 0;
    std::vector<BadSample> bad;       // path and reason, in the set's order
    std::vector<BadSample> warnings;  // good images: path and the decoder's warning
};

/// Decodes every image of the set. An image whose size differs from its annotation is bad. The
/// result does not depend on the number of threads.
AnnotationReport survey(const AnnotatedPictures& set, int threads);

/// Decodes every sample, for `data check` and `data stats`. Sums are integers, so the result does
/// not depend on the number of threads.
FolderReport survey(const SampleIndex& index, int threads);

}  // namespace hpcai::data
