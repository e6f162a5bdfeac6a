// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <hdf5.h>

#include <hpcai/data/climate_channels.hpp>

/// HDF5 files with any fault, made by calls of the library.
namespace hpcai::data::test {

using StoredBox = std::array<std::int32_t, 5>;

/// The contents to write; the defaults are a valid file of two samples of 6 x 8 pixels.
struct RawClimateFile {
    std::vector<hsize_t> image_extents{2, kClimateChannels, 6, 8};
    std::vector<hsize_t> box_extents{2, kMaxClimateBoxes, 5};
    std::vector<hsize_t> chunk;  // of the images; empty: contiguous
    hid_t image_type = H5T_IEEE_F32LE;
    hid_t box_type = H5T_STD_I32LE;
    std::string images_name = "images";
    std::string boxes_name = "boxes";
    bool deflate = false;
    bool has_values = true;        // of the images; false: no values are written
    std::vector<StoredBox> boxes;  // of the first sample; the rest is padding
    std::vector<float> values;     // empty: element i is i
};

inline hsize_t elements_of(const std::vector<hsize_t>& extents) {
    hsize_t product = 1;
    for (const hsize_t extent : extents) product *= extent;
    return product;
}

inline void write_raw(const std::filesystem::path& path, const RawClimateFile& raw) {
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    if (!raw.chunk.empty()) {
        H5Pset_chunk(list, static_cast<int>(raw.chunk.size()), raw.chunk.data());
    }
    if (raw.deflate) H5Pset_deflate(list, 4);
    hid_t space = H5Screate_simple(static_cast<int>(raw.image_extents.size()),
                                   raw.image_extents.data(), nullptr);
    hid_t dataset = H5Dcreate2(file, raw.images_name.c_str(), raw.image_type, space, H5P_DEFAULT,
                               list, H5P_DEFAULT);
    if (raw.has_values) {
        std::vector<float> values = raw.values;
        for (hsize_t i = values.size(); i < elements_of(raw.image_extents); ++i) {
            values.push_back(static_cast<float>(i));
        }
        H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    }
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(list);

    space =
        H5Screate_simple(static_cast<int>(raw.box_extents.size()), raw.box_extents.data(), nullptr);
    dataset = H5Dcreate2(file, raw.boxes_name.c_str(), raw.box_type, space, H5P_DEFAULT,
                         H5P_DEFAULT, H5P_DEFAULT);
    std::vector<std::int32_t> numbers;
    for (const StoredBox& box : raw.boxes) numbers.insert(numbers.end(), box.begin(), box.end());
    numbers.resize(elements_of(raw.box_extents), -1);
    H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data());
    H5Dclose(dataset);
    H5Sclose(space);
    H5Fclose(file);
}

}  // namespace hpcai::data::test
