// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>

#include <hpcai/data/climate_channels.hpp>
#include <hpcai/data/image.hpp>

/// HDF5 files of T samples in the layout of the ExtremeWeather data: `images` (T, 16, H, W) f4 in
/// physical units and `boxes` (T, 15, 5) integers. A row of `boxes` has four edges (BoxOrder) and a
/// class from 0 to 3; unused rows have -1 five times. The HDF5 library is not thread-safe: calls of
/// the functions below must not overlap.
namespace hpcai::data {

/// The order of a box's first four columns. The published description of the data and the program
/// that wrote the files state different orders.
enum class BoxOrder : std::uint8_t {
    detect,   // by the attribute `columns` of `boxes`, else by the values of the boxes
    corners,  // ymin, xmin, ymax, xmax
    ranges,   // ymin, ymax, xmin, xmax
};

struct ClimateFileSettings {
    BoxOrder box_order = BoxOrder::detect;
    /// True if the caller has verified that the file matches the manifest in its folder.
    bool is_verified = false;
};

/// The pressure level of channel 13: Z100 in the data's description, Z1000 in published programs.
enum class GeopotentialLevel : std::uint8_t { hpa_1000, hpa_100, unknown };

/// Returns the names of all 16 channels. Channel 13 is Z100 if `level` is hpa_100, else Z1000.
std::vector<std::string> channel_names(GeopotentialLevel level);

/// One open file, validated except for the values of `images`. A damaged file may crash the HDF5
/// library. So the constructor first opens the file in a child process, unless is_verified is set
/// or a manifest.sha256 in the same folder has the file's SHA-256. Copies of this object share the
/// open file.
class ClimateFile {
public:
    /// Throws Error(data) naming the file and any wrong dataset if the file is unreadable, takes
    /// over 120 s to open, differs from the manifest or lacks a dataset. A dataset must have the
    /// right shape and type, be stored in this file, and need no filter except deflate, shuffle and
    /// fletcher32. Limits are 200,000 samples, 4 GiB per sample and 16,384 pixels per side. Also
    /// throws for a class that is not 0 to 3. With BoxOrder::detect, a box must be possible in the
    /// order that `columns` states; if boxes have no `columns`, exactly one order must be possible.
    explicit ClimateFile(const std::filesystem::path& path,
                         const ClimateFileSettings& settings = {});

    const std::filesystem::path& path() const { return metadata_.path; }
    /// Returns the name of the file and the number of the sample, as in "climo_1984.h5/17".
    std::string name(std::int64_t sample) const;
    std::int64_t samples() const { return static_cast<std::int64_t>(metadata_.boxes.size()); }
    int height() const { return metadata_.height; }
    int width() const { return metadata_.width; }
    BoxOrder box_order() const { return metadata_.order; }  // corners or ranges
    /// Returns hpa_1000 if the middle row of channel 13 of sample 0 has a mean below 2000 m, else
    /// hpa_100; unknown if the row has no finite value.
    GeopotentialLevel level() const { return metadata_.level; }
    /// Returns the number of boxes that are dropped because they have no area inside the fields.
    std::int64_t dropped_boxes() const { return metadata_.dropped_boxes; }
    /// Returns the attribute `generator` of synthetic files; empty without this attribute. If it is
    /// not a fixed-length ASCII string of 1 to 256 bytes, returns "an unnamed generator".
    const std::string& generator() const { return metadata_.generator; }
    /// Returns the CRC-32 of the shape, the boxes and the row that level() uses. Copies of a file
    /// have equal fingerprints.
    std::uint32_t fingerprint() const { return metadata_.fingerprint; }
    /// Returns the number of samples per chunk of `images`. Reading one sample costs as much as
    /// reading its chunk.
    std::int64_t chunk_samples() const { return metadata_.chunk_samples; }

    /// Returns the boxes that are kept, clipped to the fields, in pixels; category = class + 1.
    const std::vector<Box>& boxes(std::int64_t sample) const;
    /// Reads `count` samples from `first` on as fp32 (count, 16, H, W), without normalization.
    /// Values may be NaN. Throws Error(data) if this part of the file is damaged.
    void read(std::int64_t first, std::int64_t count, std::span<float> fields) const;

private:
    struct Metadata {
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

    static std::shared_ptr<State> open(const std::filesystem::path& path,
                                       const ClimateFileSettings& settings, Metadata& metadata);

    Metadata metadata_;
    std::shared_ptr<State> state_;
};

struct ClimateFileShape {
    std::int64_t samples = 0;
    int height = kClimateRows;
    int width = kClimateColumns;
    std::map<std::string, std::string> attributes;  // of the file: names and values
};

/// Writes an uncompressed file that ClimateFile can read, with one chunk per sample. Until finish()
/// syncs and renames it, the file has a temporary name; without finish(), the destructor removes
/// it. Throws Error(usage) if the file cannot be written.
class ClimateFileWriter {
public:
    ClimateFileWriter(const std::filesystem::path& path, const ClimateFileShape& shape);
    ~ClimateFileWriter();

    /// Writes `fields` (16, H, W) and up to kMaxClimateBoxes boxes, rounded to integer edges.
    void write(std::int64_t sample, std::span<const float> fields, std::span<const Box> boxes);
    void finish();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace hpcai::data
