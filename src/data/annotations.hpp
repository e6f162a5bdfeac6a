// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <hpcai/data/annotated_pictures.hpp>

namespace hpcai::data {

/// Corners in pixels as [x1, x2) x [y1, y2), finite, perhaps out of the picture or without area.
struct RawObject {
    std::string name;
    double x1 = 0;
    double y1 = 0;
    double x2 = 0;
    double y2 = 0;
};

struct RawPicture {
    std::string path;
    std::string annotation;  // where its objects stand, for messages
    ImageSize size;
    std::vector<RawObject> objects;
};

/// Chooses classes and clips boxes. `from` is named when no class is left.
AnnotatedPictures choose(const std::vector<RawPicture>& pictures, const ClassChoice& choice,
                         const std::filesystem::path& from);

/// Throws Error(data) naming `where` unless the path is below the folder and a regular file in it.
void require_picture(const std::filesystem::path& root, const std::string& path,
                     const std::string& where);

/// What is wrong with a picture of size `found`; empty where it is as annotated.
std::string size_fault(ImageSize annotated, ImageSize found);

/// Throws Error(data) naming `where` for sides that no picture has.
ImageSize checked_size(double width, double height, const std::string& where);

}  // namespace hpcai::data
