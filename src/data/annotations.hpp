// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <hpcai/data/annotated_pictures.hpp>

namespace hpcai::data {

/// An object as annotated, in pixels: [x1, x2) x [y1, y2). Corners are finite, but may lie outside
/// of the picture or enclose no area.
struct RawObject {
    std::string name;
    double x1 = 0;
    double y1 = 0;
    double x2 = 0;
    double y2 = 0;
};

struct RawPicture {
    std::string path;
    std::string annotation;  // location of the annotation of `objects`, for messages
    ImageSize size;
    std::vector<RawObject> objects;
};

/// Chooses classes and clips boxes. `from` is for the message when no class is left.
AnnotatedPictures choose(const std::vector<RawPicture>& pictures, const ClassChoice& choice,
                         const std::filesystem::path& from);

/// Throws Error(data) naming `where` unless `path` is a regular file below `root`.
void require_picture(const std::filesystem::path& root, const std::string& path,
                     const std::string& where);

/// Returns what is wrong with a picture of size `found`; "" if it is as annotated.
std::string size_fault(ImageSize annotated, ImageSize found);

/// Returns the size of a picture. Throws Error(data) naming `where` for sides that no picture has.
ImageSize checked_size(double width, double height, const std::string& where);

}  // namespace hpcai::data
