// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <hpcai/evaluation/detection.hpp>

/// Labels and detections in COCO's data format and results format, which pycocotools reads.
namespace hpcai::evaluation {

struct TestImage {
    std::int64_t id = 0;
    std::string file_name;    // may be empty
    std::int64_t width = 0;   // in pixels; 0: unknown
    std::int64_t height = 0;  // in pixels; 0: unknown
    bool operator==(const TestImage&) const = default;
};

struct Category {
    std::int64_t id = 0;
    std::string name;  // may be empty
    bool operator==(const Category&) const = default;
};

/// A test set and its labels.
struct Annotations {
    std::vector<TestImage> images;     // by ascending id; Detection::image is the index
    std::vector<Category> categories;  // by ascending id; Detection::category is the index + 1
    DetectionTruth truth;              // the labels; its counts are the sizes of both lists
};

/// Returns the text of an `annotations.json`. Numbers read back exactly. Throws Error(internal) if
/// lists and counts do not match or a box is invalid.
std::string coco_annotations(const Annotations& annotations);

/// Returns the text of a `detections.json`, without invalid detections (is_valid). Numbers read
/// back exactly. Throws Error(internal) for an image or category that does not exist.
std::string coco_detections(const Annotations& annotations, std::span<const Detection> detections);

/// Parse the formats of coco_annotations() and coco_detections(); messages contain `name`. Indices
/// ascend with ids. Detections are ordered by image, and within an image as in the text. Other keys
/// are ignored. Throw Error(data) for text that is not JSON, a missing key, a value of another type
/// or out of range, and a duplicate or unknown id. The message names the key, its value and the
/// legal values.
Annotations parse_coco_annotations(std::string_view text, std::string_view name);
std::vector<Detection> parse_coco_detections(std::string_view text, std::string_view name,
                                             const Annotations& annotations);

/// Read files of up to 4 GiB.
Annotations read_coco_annotations(const std::filesystem::path& path);
std::vector<Detection> read_coco_detections(const std::filesystem::path& path,
                                            const Annotations& annotations);

}  // namespace hpcai::evaluation
