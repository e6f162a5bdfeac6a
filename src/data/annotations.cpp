// SPDX-License-Identifier: Apache-2.0
#include "annotations.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/comm/collectives.hpp>

#include "path_below.hpp"

namespace hpcai::data {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<std::string> all_names(const std::vector<RawPicture>& pictures) {
    std::set<std::string> names;
    for (const RawPicture& picture : pictures) {
        for (const RawObject& object : picture.objects) names.insert(object.name);
    }
    return {names.begin(), names.end()};
}

Box clipped(const RawObject& object, ImageSize size) {
    const auto inside = [](double value, int side) {
        return static_cast<float>(std::clamp(value, 0.0, static_cast<double>(side)));
    };
    return {inside(object.x1, size.width), inside(object.y1, size.height),
            inside(object.x2, size.width), inside(object.y2, size.height)};
}

bool leaves(const RawObject& object, ImageSize size) {
    return object.x1 < 0 || object.y1 < 0 || object.x2 > size.width || object.y2 > size.height;
}

json json_of(const AnnotatedPictures& set) {
    json pictures = json::array();
    for (const AnnotatedPicture& picture : set.pictures) {
        json boxes = json::array();
        for (const Box& box : picture.boxes) {
            boxes.push_back({box.x1, box.y1, box.x2, box.y2, box.category});
        }
        pictures.push_back({picture.path, picture.size.width, picture.size.height, boxes});
    }
    return {
        {"root", set.root.string()},
        {"classes", set.classes},
        {"pictures", pictures},
        {"left_out", {set.left_out.without_area, set.left_out.other_classes, set.left_out.crowds}},
        {"clipped_boxes", set.clipped_boxes}};
}

/// Of what json_of() made on rank 0, so nothing is checked.
AnnotatedPictures set_of(const json& from) {
    AnnotatedPictures set;
    set.root = from["root"].get<std::string>();
    set.classes = from["classes"].get<std::vector<std::string>>();
    for (const json& row : from["pictures"]) {
        set.pictures.push_back({row[0], {row[1], row[2]}, {}});
        for (const json& box : row[3]) {
            set.pictures.back().boxes.push_back({box[0], box[1], box[2], box[3], box[4]});
        }
    }
    const json& left_out = from["left_out"];
    set.left_out = {left_out[0], left_out[1], left_out[2]};
    set.clipped_boxes = from["clipped_boxes"];
    return set;
}

}  // namespace

AnnotatedPictures choose(const std::vector<RawPicture>& pictures, const ClassChoice& choice,
                         const fs::path& from) {
    AnnotatedPictures chosen;
    chosen.classes = choice.names.empty() ? all_names(pictures) : choice.names;
    require(!chosen.classes.empty(), ExitCode::data, "{}: no object in any picture", from.string());
    std::map<std::string, std::int32_t> categories;
    for (const std::string& name : chosen.classes) {
        const auto category = static_cast<std::int32_t>(categories.size()) + 1;
        require(categories.emplace(name, category).second, ExitCode::usage,
                "data.class_names: expected each class once, got '{}' twice", name);
    }
    for (const RawPicture& picture : pictures) {
        chosen.pictures.push_back({picture.path, picture.size, {}});
        for (const RawObject& object : picture.objects) {
            const auto found = categories.find(object.name);
            require(found != categories.end() || choice.ignore_others, ExitCode::data,
                    "{}: an object of class '{}', which the training set does not have",
                    picture.annotation, object.name);
            if (found == categories.end()) {
                ++chosen.left_out.other_classes;
                continue;
            }
            Box box = clipped(object, picture.size);
            box.category = found->second;
            if (box.x1 < box.x2 && box.y1 < box.y2) {
                chosen.pictures.back().boxes.push_back(box);
                chosen.clipped_boxes += leaves(object, picture.size);
            } else {
                ++chosen.left_out.without_area;
            }
        }
    }
    return chosen;
}

AnnotatedPictures read_at_one_rank(comm::Communicator& ranks,
                                   const std::function<AnnotatedPictures()>& read) {
    AnnotatedPictures set;
    comm::collective_try(ranks, [&] {
        if (ranks.rank() == 0) set = read();
    });
    if (ranks.size() == 1) return set;
    std::vector<std::uint8_t> packed;
    if (ranks.rank() == 0) packed = json::to_cbor(json_of(set));  // holds any file name
    packed = comm::broadcast(ranks, std::move(packed));
    return ranks.rank() == 0 ? set : set_of(json::from_cbor(packed));
}

void require_picture(const fs::path& root, const std::string& path, const std::string& where) {
    require(is_path_below(path), ExitCode::data, "{}: picture '{}' leaves its folder", where, path);
    std::error_code error;
    require(fs::is_regular_file(root / path, error), ExitCode::data,
            "{}: its picture {} is not there", where, (root / path).string());
}

std::string size_fault(ImageSize annotated, ImageSize found) {
    if (found.width == annotated.width && found.height == annotated.height) return "";
    return fmt::format("{} x {} pixels, but its annotation says {} x {}", found.width, found.height,
                       annotated.width, annotated.height);
}

ImageSize checked_size(double width, double height, const std::string& where) {
    const auto is_side = [](double side) {
        return side >= 1 && side <= kMaximumImageSide && side == std::floor(side);
    };
    require(is_side(width) && is_side(height), ExitCode::data,
            "{}: a picture of {} x {} pixels, expected whole sides from 1 to {}", where, width,
            height, kMaximumImageSide);
    return {static_cast<int>(width), static_cast<int>(height)};
}

}  // namespace hpcai::data
