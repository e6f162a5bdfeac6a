// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hpcai/data/box.hpp>
#include <hpcai/data/climate_channels.hpp>

/// HDF5 files in the layout of the ExtremeWeather data: `images` (T, 16, H, W) f4 in physical
/// units and `boxes` (T, 15, 5) i4, rows ymin, xmin, ymax, xmax, class 0 to 3, or all -1.
/// The HDF5 library is called from one thread at a time: calls of this header must not overlap.
namespace hpcai::data {

/// Order of a box's first four columns. The published description and the program that wrote the
/// published files contradict each other.
enum class BoxOrder : std::uint8_t {
    detect,   // by the file's attribute or else by what the boxes allow
    corners,  // ymin, xmin, ymax, xmax
    ranges,   // ymin, ymax, xmin, xmax
};

struct ClimateFileSettings {
    BoxOrder box_order = BoxOrder::detect;
    /// The file was already compared with the manifest beside it, which is not done again.
    bool is_vouched_for = false;
};

/// What channel 13 holds, which the description calls Z100 and the programs Z1000.
enum class GeopotentialLevel : std::uint8_t { hpa_1000, hpa_100, unknown };

/// Returns the names of all 16 channels. Channel 13 is Z100 where `level` says so, else Z1000, what
/// it is trained as.
std::vector<std::string> channel_names(GeopotentialLevel level);

/// One open file. Everything in it is checked before it is believed; a `manifest.sha256` beside it
/// that lists it is checked before HDF5 sees it. A file that no manifest vouches for is first
/// opened in a process of its own, which may crash.
class ClimateFile {
public:
    /// Throws Error(data) naming file and dataset when the file is unreadable, differs from the
    /// manifest, lacks a dataset, or one has another rank, shape or type, lies in other files, or
    /// needs filters other than deflate, shuffle and fletcher32; for a class out of 0 to 3; when
    /// both or neither order of the boxes' columns are possible and none is forced.
    explicit ClimateFile(const std::filesystem::path& path,
                         const ClimateFileSettings& settings = {});
    ~ClimateFile();
    ClimateFile(ClimateFile&&) noexcept;
    ClimateFile& operator=(ClimateFile&&) noexcept;

    const std::filesystem::path& path() const { return facts_.path; }
    std::int64_t samples() const { return static_cast<std::int64_t>(facts_.boxes.size()); }
    int height() const { return facts_.height; }
    int width() const { return facts_.width; }
    BoxOrder box_order() const { return facts_.order; }       // corners or ranges
    GeopotentialLevel level() const { return facts_.level; }  // below 2000 m in the mean: 1000 hPa
    /// Boxes without area inside the picture.
    std::int64_t dropped_boxes() const { return facts_.dropped_boxes; }
    /// What made the samples up, by the attribute `generator` of the file; empty where it has none.
    const std::string& generator() const { return facts_.generator; }
    /// Equal of copies of a file: CRC-32 of its shape, its boxes and a row of its first sample.
    std::uint32_t fingerprint() const { return facts_.fingerprint; }
    /// Samples that share a chunk of `images`: reading one of them costs as much as all of them.
    std::int64_t chunk_samples() const { return facts_.chunk_samples; }

    /// Boxes in pixels, clipped to the picture, category = class + 1.
    const std::vector<Box>& boxes(std::int64_t sample) const;
    /// Reads `count` samples from `first` on, (count, 16, H, W) fp32 as stored, whatever they
    /// hold: NaN is the caller's to judge. Throws Error(data) when the file is damaged there.
    void read(std::int64_t first, std::int64_t count, std::span<float> fields) const;

private:
    struct Facts {
        std::filesystem::path path;
        int height = 0;
        int width = 0;
        BoxOrder order = BoxOrder::detect;
        GeopotentialLevel level = GeopotentialLevel::unknown;
        std::int64_t dropped_boxes = 0;
        std::string generator;
        std::uint32_t fingerprint = 0;
        std::int64_t chunk_samples = 1;
        std::vector<std::vector<Box>> boxes;  // by sample
    };
    struct State;

    static std::unique_ptr<State> open(const std::filesystem::path& path,
                                       const ClimateFileSettings& settings, Facts& facts);

    Facts facts_;
    std::unique_ptr<State> state_;
};

/// Shape and origin of a file to be written.
struct ClimateFileShape {
    std::int64_t samples = 0;
    int height = kClimateRows;
    int width = kClimateColumns;
    std::map<std::string, std::string> attributes;  // of the file, for people
};

/// Writes such a file, uncompressed, one chunk a sample. The file appears under its name when
/// finish() has been called, whole and synced; without that, nothing stays.
class ClimateFileWriter {
public:
    /// Throws Error(usage) when the file cannot be written.
    ClimateFileWriter(const std::filesystem::path& path, const ClimateFileShape& shape);
    ~ClimateFileWriter();
    ClimateFileWriter(const ClimateFileWriter&) = delete;
    ClimateFileWriter& operator=(const ClimateFileWriter&) = delete;

    /// `fields` (16, H, W); at most kMaxClimateBoxes boxes, edges rounded to whole pixels.
    void write(std::int64_t sample, std::span<const float> fields, std::span<const Box> boxes);
    void finish();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace hpcai::data
