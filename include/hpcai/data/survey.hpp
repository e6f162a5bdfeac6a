// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/data/annotated_pictures.hpp>
#include <hpcai/data/bad_samples.hpp>
#include <hpcai/data/image.hpp>
#include <hpcai/data/sample_index.hpp>

namespace hpcai::data {

/// What decoding every picture of a folder at full size shows.
struct FolderReport {
    std::vector<std::int64_t> samples_per_class;  // bad ones included
    std::vector<BadSample> bad;                   // path and reason, in index order
    std::int64_t smallest_side = 0;               // pixels, of the good ones; 0 without any
    std::int64_t largest_side = 0;                // pixels
    std::int64_t pixels = 0;                      // of the good ones
    /// Per channel over all pixels of the good ones, scaled to [0, 1]; 0 without any.
    std::array<double, kImageChannels> mean{};
    std::array<double, kImageChannels> standard_deviation{};

    /// ok, or data when a sample is bad.
    ExitCode exit_code() const { return bad.empty() ? ExitCode::ok : ExitCode::data; }
};

/// What decoding every picture of an annotated set at full size shows.
struct AnnotationReport {
    std::vector<std::int64_t> boxes_per_class;
    std::int64_t pictures_without_box = 0;
    std::vector<BadSample> bad;  // path and reason, in the set's order
};

/// A picture of another size than annotated is bad. The same for every thread count.
AnnotationReport survey(const AnnotatedPictures& set, int threads);

/// Decodes every sample with `threads` threads (`data check`, `data stats`). The report is the same
/// for every thread count: sums are kept in integers.
FolderReport survey(const SampleIndex& index, int threads);

}  // namespace hpcai::data
