// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <hpcai/data/annotated_pictures.hpp>

namespace hpcai::data {

/// An object as annotated, in pixels: [x1, x2) x [y1, y2). Coordinates are finite, but the box may
/// exceed the image or have no area.
struct RawObject {
    std::string class_name;
    double x1 = 0;
    double y1 = 0;
    double x2 = 0;
    double y2 = 0;
};

struct RawPicture {
    std::string path;
    std::string annotation;  // file or entry with the annotation, for messages
    ImageSize size;
    std::vector<RawObject> objects;
};

/// Selects the objects of the chosen classes and clips boxes. Throws Error(data) naming `file`.
AnnotatedPictures select_classes(const std::vector<RawPicture>& pictures, const ClassChoice& choice,
                                 const std::filesystem::path& file);

/// Throws Error(data) naming the location `where` unless `path` is a regular file below `root`.
void require_picture(const std::filesystem::path& root, const std::string& path,
                     const std::string& where);

/// Returns how the size of an image differs from its annotation; "" if it does not.
std::string size_mismatch(ImageSize annotated, ImageSize found);

/// Returns the size. Throws Error(data) naming `where` for sides other than 1 to kMaxImageSide.
ImageSize checked_size(double width, double height, const std::string& where);

}  // namespace hpcai::data
