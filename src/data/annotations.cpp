// SPDX-License-Identifier: Apache-2.0
#include "annotations.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <hpcai/base/error.hpp>

#include "picture_file.hpp"

namespace hpcai::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> all_class_names(const std::vector<RawPicture>& pictures) {
    std::set<std::string> names;
    for (const RawPicture& picture : pictures) {
        for (const RawObject& object : picture.objects) names.insert(object.class_name);
    }
    return {names.begin(), names.end()};
}

Box clipped(const RawObject& object, ImageSize size) {
    const auto clamped = [](double value, int side) {
        return static_cast<float>(std::clamp(value, 0.0, static_cast<double>(side)));
    };
    return {clamped(object.x1, size.width), clamped(object.y1, size.height),
            clamped(object.x2, size.width), clamped(object.y2, size.height)};
}

bool exceeds(const RawObject& object, ImageSize size) {
    return object.x1 < 0 || object.y1 < 0 || object.x2 > size.width || object.y2 > size.height;
}

}  // namespace

AnnotatedPictures select_classes(const std::vector<RawPicture>& pictures, const ClassChoice& choice,
                                 const fs::path& file) {
    AnnotatedPictures chosen;
    chosen.classes = choice.names.empty() ? all_class_names(pictures) : choice.names;
    require(!chosen.classes.empty(), ExitCode::data, "{}: no object in any image", file.string());
    std::map<std::string, std::int32_t> categories;
    for (const std::string& name : chosen.classes) {
        const auto category = static_cast<std::int32_t>(categories.size()) + 1;
        require(categories.emplace(name, category).second, ExitCode::usage,
                "data.class_names: expected each class once, got '{}' twice", name);
    }
    for (const RawPicture& picture : pictures) {
        chosen.pictures.push_back({picture.path, picture.size, {}});
        for (const RawObject& object : picture.objects) {
            const auto found = categories.find(object.class_name);
            require(found != categories.end() || choice.ignore_others, ExitCode::data,
                    "{}: an object has class '{}', which the training set does not have",
                    picture.annotation, object.class_name);
            if (found == categories.end()) {
                ++chosen.omitted.other_classes;
                continue;
            }
            Box box = clipped(object, picture.size);
            box.category = found->second;
            if (box.x1 < box.x2 && box.y1 < box.y2) {
                chosen.pictures.back().boxes.push_back(box);
                chosen.clipped_boxes += exceeds(object, picture.size);
            } else {
                ++chosen.omitted.without_area;
            }
        }
    }
    return chosen;
}

void require_picture(const fs::path& root, const std::string& path, const std::string& where) {
    require(is_path_below(path), ExitCode::data, "{}: '{}' is outside its folder", where, path);
    std::error_code error;
    require(fs::is_regular_file(root / path, error), ExitCode::data,
            "{}: the image {} does not exist", where, (root / path).string());
}

std::string size_mismatch(ImageSize annotated, ImageSize found) {
    if (found == annotated) return "";
    return fmt::format("{} x {} pixels, but annotated as {} x {}", found.width, found.height,
                       annotated.width, annotated.height);
}

ImageSize checked_size(double width, double height, const std::string& where) {
    const auto is_side = [](double side) {
        return side >= 1 && side <= kMaxImageSide && side == std::floor(side);
    };
    require(is_side(width) && is_side(height), ExitCode::data,
            "{}: an image has {} x {} pixels, expected integers from 1 to {}", where, width, height,
            kMaxImageSide);
    return {static_cast<int>(width), static_cast<int>(height)};
}

}  // namespace hpcai::data
