// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>

#include <hpcai/data/jpeg.hpp>
#include <hpcai/data/survey.hpp>

#include "annotations.hpp"
#include "picture_file.hpp"
#include "worker_pool.hpp"

namespace hpcai::data {
namespace {

/// Sums over the pixels of images. 64 bits hold the squares of 2.8e14 pixels.
struct PixelSums {
    std::uint64_t pixels = 0;
    std::array<std::uint64_t, kImageChannels> values{};
    std::array<std::uint64_t, kImageChannels> squares{};

    void add(const Image& image) {
        pixels += image.pixels.size() / kImageChannels;
        for (std::size_t i = 0; i < image.pixels.size(); i += kImageChannels) {
            for (std::size_t c = 0; c < kImageChannels; ++c) {
                const std::uint64_t value = image.pixels[i + c];
                values[c] += value;
                squares[c] += value * value;
            }
        }
    }
    void add(const PixelSums& other) {
        pixels += other.pixels;
        for (std::size_t c = 0; c < kImageChannels; ++c) {
            values[c] += other.values[c];
            squares[c] += other.squares[c];
        }
    }
};

/// Decodes an image and returns use(decoded), or the reason if the image is bad.
template <typename Use>
std::string find_fault(const std::filesystem::path& file, const Use& use) {
    try {
        const DecodedImage decoded = decode_jpeg(read_picture(file));
        return decoded.damage.empty() ? use(decoded) : decoded.damage;
    } catch (const DecodeError& error) {
        return error.what();
    }
}

void store_statistics(const PixelSums& sums, FolderReport& report) {
    report.pixels = static_cast<std::int64_t>(sums.pixels);
    const auto pixels = static_cast<double>(sums.pixels);
    for (std::size_t c = 0; c < kImageChannels; ++c) {
        const double mean = static_cast<double>(sums.values[c]) / pixels;
        const double square = static_cast<double>(sums.squares[c]) / pixels;
        report.mean[c] = mean / 255;
        report.standard_deviation[c] = std::sqrt(std::max(0.0, square - mean * mean)) / 255;
    }
}

}  // namespace

AnnotationReport survey(const AnnotatedPictures& set, int threads) {
    std::vector<std::string> faults(set.pictures.size());
    parallel_for(static_cast<std::int64_t>(faults.size()), threads, [&](std::int64_t i) {
        const AnnotatedPicture& picture = set.pictures[i];
        faults[i] = find_fault(set.root / picture.path, [&](const DecodedImage& decoded) {
            return size_mismatch(picture.size, decoded.full_size);
        });
    });
    AnnotationReport report;
    report.boxes_per_class.resize(set.classes.size());
    for (std::size_t i = 0; i < faults.size(); ++i) {
        const AnnotatedPicture& picture = set.pictures[i];
        report.pictures_without_box += picture.boxes.empty();
        for (const Box& box : picture.boxes) ++report.boxes_per_class[box.category - 1];
        if (!faults[i].empty()) {
            report.bad.push_back({(set.root / picture.path).string(), faults[i]});
        }
    }
    return report;
}

FolderReport survey(const SampleIndex& index, int threads) {
    std::mutex mutex;
    PixelSums sums;
    std::int64_t smallest = kMaxImageSide, largest = 0;
    std::vector<std::string> faults(index.samples.size());
    parallel_for(static_cast<std::int64_t>(faults.size()), threads, [&](std::int64_t i) {
        faults[i] = find_fault(index.path_of(i), [&](const DecodedImage& decoded) {
            PixelSums own;
            own.add(decoded.image);
            const auto [shorter, longer] =
                std::minmax(decoded.full_size.width, decoded.full_size.height);
            const std::lock_guard lock(mutex);
            sums.add(own);
            smallest = std::min<std::int64_t>(smallest, shorter);
            largest = std::max<std::int64_t>(largest, longer);
            return std::string();
        });
    });
    FolderReport report;
    report.samples_per_class.resize(index.classes.size());
    for (std::size_t i = 0; i < faults.size(); ++i) {
        ++report.samples_per_class[index.samples[i].label];
        if (!faults[i].empty()) report.bad.push_back({index.path_of(i).string(), faults[i]});
    }
    if (sums.pixels == 0) return report;
    report.smallest_side = smallest;
    report.largest_side = largest;
    store_statistics(sums, report);
    return report;
}

}  // namespace hpcai::data
