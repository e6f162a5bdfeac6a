// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/data/image.hpp>
#include <hpcai/data/jpeg.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/records/record_fields.hpp>

namespace hpcai::data {

struct AnnotatedPicture {
    std::string path;        // relative to the set's root
    ImageSize size;          // as annotated
    std::vector<Box> boxes;  // in pixels, inside the picture; category = index of the class + 1

    HPCAI_RECORD(AnnotatedPicture, path, size, boxes);
};

/// Numbers of annotated objects that are not in the set.
struct LeftOut {
    std::int64_t without_area = 0;   // without area inside the picture
    std::int64_t other_classes = 0;  // of classes that were not chosen
    std::int64_t crowds = 0;         // COCO's iscrowd

    HPCAI_RECORD(LeftOut, without_area, other_classes, crowds);
};

/// Pictures with boxes around objects. A picture may have none.
struct AnnotatedPictures {
    std::filesystem::path root;
    std::vector<std::string> classes;
    std::vector<AnnotatedPicture> pictures;
    LeftOut left_out;
    std::int64_t clipped_boxes = 0;  // clipped at the edge of their picture

    HPCAI_RECORD(AnnotatedPictures, root, classes, pictures, left_out, clipped_boxes);
};

/// The classes whose objects are used.
struct ClassChoice {
    std::vector<std::string> names;  // by category - 1; empty: all names, sorted by bytes
    bool ignore_others = false;      // otherwise an object of a class not in `names` is an error
};

/// Reads the pictures of a Pascal VOC folder that ImageSets/Main/`split`.txt lists, in the order of
/// that list: Annotations/<name>.xml and JPEGImages/<name>.jpg. VOC counts pixels from 1 and
/// includes xmax, so a box is [xmin - 1, xmax) here; one with equal corners has no area. Objects
/// marked difficult are used. Pictures are not opened. Throws Error(data) naming the file for a
/// missing file, XML that does not parse, corners that are not finite, sides that are not whole
/// numbers from 1 to kMaxImageSide, and names that leave the folder. Also throws for an object of a
/// class not in `choice` (unless ignore_others) and a list that is empty or names a picture twice.
AnnotatedPictures read_voc(const std::filesystem::path& root, const std::string& split,
                           const ClassChoice& choice);

/// Reads the pictures of a COCO annotation file (instances, JSON), in the order of the file, below
/// `root`. The file gives a box as x, y, width, height. Throws like read_voc(), and Error(data) for
/// ids and names of categories that occur twice, and ids that do not exist.
AnnotatedPictures read_coco(const std::filesystem::path& file, const std::filesystem::path& root,
                            const ClassChoice& choice);

struct ResizedPictures {
    std::shared_ptr<const SampleSet> samples;
    std::int64_t narrow_boxes = 0;  // left out: less than a pixel wide or high
};

/// Resizes whole pictures and their boxes to height x width. In training they are mirrored with
/// data.flip_probability and data.vertical_flip_probability. Boxes that become less than a pixel
/// wide or high are left out and counted. A picture whose size is not as annotated is a bad sample.
/// data.decoded_cache_mib is the budget of a cache of resized pictures. Files that `staged` has are
/// read from it. Throws Error(data) naming a picture with more than data.max_boxes boxes.
ResizedPictures make_annotated_samples(AnnotatedPictures pictures, const config::DataConfig& data,
                                       ImageSize size,
                                       std::shared_ptr<const StagedPictures> staged = nullptr);

}  // namespace hpcai::data
