// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hdf5.h>

#include <hpcai/data/climate_file.hpp>

namespace hpcai::data::climate {

/// Owns an HDF5 object, which the given function closes.
class Hdf5Handle {
public:
    using Close = herr_t (*)(hid_t);

    Hdf5Handle() = default;
    Hdf5Handle(hid_t id, Close close) : id_(id), close_(close) {}
    Hdf5Handle(Hdf5Handle&& other) noexcept
        : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
    Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
        std::swap(id_, other.id_);
        std::swap(close_, other.close_);
        return *this;
    }
    ~Hdf5Handle() {
        if (valid()) close_(id_);
    }

    bool valid() const { return id_ >= 0; }
    hid_t id() const { return id_; }

private:
    hid_t id_ = H5I_INVALID_HID;
    Close close_ = nullptr;
};

/// Disables the library's error output and its clean-up at exit, which could block on an object
/// that a damaged file left open. Must precede all other calls of HDF5.
inline void configure_hdf5() {
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

inline constexpr const char* kImagesName = "images";
inline constexpr const char* kBoxesName = "boxes";
inline constexpr const char* kGeneratorName = "generator";  // attribute of the file
inline constexpr const char* kColumnsName = "columns";      // attribute of the boxes
inline constexpr const char* kCornerColumns = "ymin,xmin,ymax,xmax,class";
inline constexpr const char* kRangeColumns = "ymin,ymax,xmin,xmax,class";
inline constexpr int kBoxColumns = 5;

/// An open dataset with the expected type and number of dimensions.
struct Hdf5Dataset {
    Hdf5Handle handle;
    std::vector<hsize_t> extents;
    hsize_t chunk_extent = 1;  // of the first axis; 1 if the dataset is not chunked
    std::string location;      // "'file.h5': images", for messages
};

struct Hdf5Expectation {
    const char* name;
    H5T_class_t type;
    std::size_t element_bytes;  // 0 for any size
    int dimensions;
};

/// Opens dataset `expected.name`. Throws Error(data) if it is absent, a link or stored in another
/// file, differs from `expected`, or needs a filter other than deflate, shuffle and fletcher32.
Hdf5Dataset open_dataset(const Hdf5Handle& file, const std::filesystem::path& path,
                         const Hdf5Expectation& expected);

/// Returns a string attribute of fixed length, at most 256 bytes; nothing if there is none.
std::optional<std::string> text_attribute(const Hdf5Handle& object, const char* name);

/// One row of the dataset `boxes` as stored: four edges and a class, or -1 five times.
using BoxRow = std::array<std::int32_t, 5>;

/// All rows of a file, kMaxClimateBoxes per sample.
struct BoxTable {
    std::vector<BoxRow> rows;
    int height = 0;  // of the images
    int width = 0;
    std::string location;  // for messages
};

/// Throws Error(data) for a class that is not 0 to 3.
void require_classes(const BoxTable& table);

/// Returns `stated`; for `detect`, returns the only possible order, or corners if there is no box.
/// In a possible order, ymin <= ymax <= height and xmin <= xmax <= width. Throws Error(data) if
/// `stated` is impossible or, for `detect`, if the boxes permit both orders or no order.
BoxOrder determine_box_order(const BoxTable& table, BoxOrder stated);

struct DecodedBoxes {
    std::vector<std::vector<Box>> boxes_by_sample;
    std::int64_t dropped = 0;  // boxes without area inside the image
};

DecodedBoxes decode_boxes(const BoxTable& table, BoxOrder order);

}  // namespace hpcai::data::climate
