// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <hpcai/base/median.hpp>
#include <hpcai/data/survey.hpp>
#include <hpcai/storage/sha256.hpp>

#include "picture_file.hpp"
#include "worker_pool.hpp"

namespace hpcai::data {
namespace {

/// Sums over the pixels of images. 64 bits hold the sum of the squares of 2.8e14 values.
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

/// Decodes the images. Lists the bad ones with the reason, and others that have a warning, in the
/// report. use(i, decoded) returns a reason why an undamaged image is bad, or "".
template <typename Use, typename Report>
void inspect(const SampleIndex& index, int threads, const Use& use, Report& report) {
    const IndexedPictures pictures(index);
    const std::size_t images = index.samples.size();
    std::vector<std::string> faults(images), warnings(images);
    parallel_for(std::ssize(faults), threads, [&](std::int64_t i) {
        try {
            const std::vector<std::uint8_t> bytes = pictures.read(i);
            const std::string listed = index.is_packed() ? index.ranges[i].sha256 : "";
            if (!listed.empty() && storage::sha256_hex(std::as_bytes(std::span(bytes))) != listed) {
                throw DecodeError("the shard is damaged: the SHA-256 is not that of the index");
            }
            const DecodedImage decoded = decode_image(bytes);
            faults[i] = decoded.damage.empty() ? use(i, decoded) : decoded.damage;
            warnings[i] = decoded.warning;
        } catch (const DecodeError& error) {
            faults[i] = error.what();
        }
    });
    for (std::size_t i = 0; i < images; ++i) {
        auto& list = faults[i].empty() ? report.warnings : report.bad;
        const std::string& reason = faults[i].empty() ? warnings[i] : faults[i];
        if (!reason.empty()) list.push_back({index.location_of(i), reason});
    }
}

void store_statistics(const PixelSums& sums, FolderReport& report) {
    report.pixels = static_cast<std::int64_t>(sums.pixels);
    const auto pixels = static_cast<double>(sums.pixels);
    for (std::size_t c = 0; c < kImageChannels; ++c) {
        const double mean = static_cast<double>(sums.values[c]) / pixels;
        const double mean_square = static_cast<double>(sums.squares[c]) / pixels;
        report.mean[c] = mean / 255;
        report.standard_deviation[c] = std::sqrt(std::max(0.0, mean_square - mean * mean)) / 255;
    }
}

}  // namespace

AnnotationReport survey(const AnnotatedPictures& set, int threads) {
    AnnotationReport report;
    SampleIndex files;
    files.root = set.root;
    report.boxes_per_class.resize(set.classes.size());
    for (const AnnotatedPicture& picture : set.pictures) {
        files.samples.push_back({picture.path});
        report.pictures_without_box += picture.boxes.empty();
        for (const Box& box : picture.boxes) ++report.boxes_per_class[box.category - 1];
    }
    inspect(
        files, threads,
        [&](auto i, const DecodedImage& decoded) {
            return size_mismatch(set.pictures[i].size, decoded.full_size);
        },
        report);
    return report;
}

FolderReport survey(const SampleIndex& index, int threads) {
    std::mutex mutex;
    PixelSums sums;
    std::vector<double> shorter_sides;
    std::int64_t largest = 0;
    const auto add = [&](auto, const DecodedImage& decoded) {
        PixelSums own;
        own.add(decoded.image);
        const auto [shorter, longer] =
            std::minmax(decoded.full_size.width, decoded.full_size.height);
        const std::lock_guard lock(mutex);
        sums.add(own);
        shorter_sides.push_back(shorter);
        largest = std::max<std::int64_t>(largest, longer);
        return std::string();
    };
    FolderReport report;
    report.samples_per_class.resize(index.classes.size());
    for (const Sample& sample : index.samples) ++report.samples_per_class[sample.label];
    inspect(index, threads, add, report);
    if (sums.pixels == 0) return report;
    report.smallest_side = static_cast<std::int64_t>(std::ranges::min(shorter_sides));
    report.median_side = static_cast<std::int64_t>(median(std::move(shorter_sides)));
    report.largest_side = largest;
    store_statistics(sums, report);
    return report;
}

}  // namespace hpcai::data
