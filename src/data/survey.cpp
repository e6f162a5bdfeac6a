// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <string>

#include <hpcai/base/error.hpp>
#include <hpcai/data/jpeg.hpp>
#include <hpcai/data/survey.hpp>

#include "annotations.hpp"
#include "picture_file.hpp"
#include "worker_pool.hpp"

namespace hpcai::data {

namespace {

/// Sums over the pixels of pictures. 64 bits hold the squares of 2.8e14 pixels.
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

class Survey {
public:
    explicit Survey(const SampleIndex& index) : index_(index) {}

    void look_at(std::int64_t sample) {
        try {
            const DecodedImage decoded = decode_jpeg(read_picture(index_.path_of(sample)));
            if (!decoded.damage.empty()) throw DecodeError(decoded.damage);
            PixelSums sums;
            sums.add(decoded.image);
            const std::lock_guard lock(mutex_);
            sums_.add(sums);
            smallest_ = std::min({smallest_, decoded.full.width, decoded.full.height});
            largest_ = std::max({largest_, decoded.full.width, decoded.full.height});
        } catch (const DecodeError& error) {
            const std::lock_guard lock(mutex_);
            bad_[sample] = error.what();
        }
    }

    FolderReport report() const {
        FolderReport report;
        report.samples_per_class.assign(index_.classes.size(), 0);
        for (const Sample& sample : index_.samples) {
            ++report.samples_per_class[sample.label];
        }
        for (const auto& [sample, reason] : bad_) {
            report.bad.push_back({index_.path_of(sample).string(), reason});
        }
        if (sums_.pixels == 0) return report;
        report.smallest_side = smallest_;
        report.largest_side = largest_;
        report.pixels = static_cast<std::int64_t>(sums_.pixels);
        const auto pixels = static_cast<double>(sums_.pixels);
        for (std::size_t c = 0; c < kImageChannels; ++c) {
            const double mean = static_cast<double>(sums_.values[c]) / pixels;
            const double square = static_cast<double>(sums_.squares[c]) / pixels;
            report.mean[c] = mean / 255;
            report.standard_deviation[c] = std::sqrt(std::max(0.0, square - mean * mean)) / 255;
        }
        return report;
    }

private:
    const SampleIndex& index_;
    std::mutex mutex_;
    PixelSums sums_;
    int smallest_ = kMaxImageSide;
    int largest_ = 0;
    std::map<std::int64_t, std::string> bad_;
};

/// Why a picture is bad; empty where it is sound.
std::string fault_of(const AnnotatedPicture& picture, const std::filesystem::path& file) {
    try {
        const DecodedImage decoded = decode_jpeg(read_picture(file));
        if (!decoded.damage.empty()) return decoded.damage;
        return size_fault(picture.size, decoded.full);
    } catch (const DecodeError& error) {
        return error.what();
    }
}

}  // namespace

AnnotationReport survey(const AnnotatedPictures& set, int threads) {
    std::vector<std::string> faults(set.pictures.size());
    parallel_for(static_cast<std::int64_t>(faults.size()), threads, [&](std::int64_t i) {
        const AnnotatedPicture& picture = set.pictures[i];
        faults[i] = fault_of(picture, set.root / picture.path);
    });
    AnnotationReport report;
    report.boxes_per_class.resize(set.classes.size());
    for (std::size_t i = 0; i < faults.size(); ++i) {
        const AnnotatedPicture& picture = set.pictures[i];
        report.pictures_without_box += picture.boxes.empty();
        for (const Box& box : picture.boxes) {
            ++report.boxes_per_class[box.category - 1];
        }
        if (!faults[i].empty()) {
            report.bad.push_back({(set.root / picture.path).string(), faults[i]});
        }
    }
    return report;
}

FolderReport survey(const SampleIndex& index, int threads) {
    Survey survey(index);
    parallel_for(static_cast<std::int64_t>(index.samples.size()), threads,
                 [&survey](std::int64_t sample) { survey.look_at(sample); });
    return survey.report();
}

}  // namespace hpcai::data
