// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hpcai/evaluation/detection.hpp>

/// Labels and detections in the formats of COCO (cocodataset.org, "data format" and "results
/// format"), which pycocotools reads.
namespace hpcai::evaluation {

struct TestImage {
    std::int64_t id = 0;
    std::string file_name;    // may be empty
    std::int64_t width = 0;   // in pixels; 0: not said
    std::int64_t height = 0;  // likewise
    bool operator==(const TestImage&) const = default;
};

struct Category {
    std::int64_t id = 0;
    std::string name;  // may be empty
    bool operator==(const Category&) const = default;
};

/// A test set and its labels.
struct Annotations {
    std::vector<TestImage> images;     // by rising id; a detection's image is the index
    std::vector<Category> categories;  // by rising id; a detection's category is the index + 1
    DetectionTruth truth;              // of so many images and categories
};

/// The text of an `annotations.json`. Numbers read back exactly. Throws Error(internal) when
/// lists and counts do not fit or a box is not sound.
std::string coco_annotations(const Annotations& annotations);

/// The text of a `detections.json`; what is not sound is left out. Numbers read back exactly.
/// Throws Error(internal) for an image or a category that is not there.
std::string coco_detections(const Annotations& annotations, std::span<const Detection> detections);

/// Reads such texts; `name` stands in messages. Images and categories get their index by id.
/// Detections come by rising image, of one image in the order of the text. Keys that are not used
/// here are ignored. Throw Error(data) naming the place, what came and what is legal for text that
/// is not JSON, a key that is missing or of another type, an id that occurs twice or names nothing,
/// and numbers that are not sound.
Annotations parse_coco_annotations(std::string_view text, std::string_view name);
std::vector<Detection> parse_coco_detections(std::string_view text, std::string_view name,
                                             const Annotations& annotations);

/// Read the same from files of up to 1 GiB.
Annotations read_coco_annotations(const std::filesystem::path& path);
std::vector<Detection> read_coco_detections(const std::filesystem::path& path,
                                            const Annotations& annotations);

}  // namespace hpcai::evaluation
