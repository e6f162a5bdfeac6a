// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/data/box.hpp>
#include <hpcai/data/jpeg.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/records/record_fields.hpp>

namespace hpcai::data {

struct AnnotatedPicture {
    std::string path;        // relative to the set's root
    ImageSize size;          // as annotated
    std::vector<Box> boxes;  // inside the picture, category = place of the class + 1

    HPCAI_RECORD(AnnotatedPicture, path, size, boxes);
};

/// Objects that annotations have and a set has not.
struct LeftOut {
    std::int64_t without_area = 0;   // inside the picture
    std::int64_t other_classes = 0;  // not chosen
    std::int64_t crowds = 0;         // COCO's iscrowd

    HPCAI_RECORD(LeftOut, without_area, other_classes, crowds);
};

/// Pictures with boxes around objects. A picture may have none.
struct AnnotatedPictures {
    std::filesystem::path root;
    std::vector<std::string> classes;
    std::vector<AnnotatedPicture> pictures;
    LeftOut left_out;
    std::int64_t clipped_boxes = 0;  // that reached out of their picture

    HPCAI_RECORD(AnnotatedPictures, root, classes, pictures, left_out, clipped_boxes);
};

/// Which objects are taken.
struct ClassChoice {
    std::vector<std::string> names;  // in the order of categories; empty: all, sorted by bytes
    bool ignore_others = false;      // else an object of a class not named is an error
};

/// The pictures of a Pascal VOC folder that ImageSets/Main/`split`.txt lists, in its order:
/// Annotations/<name>.xml and JPEGImages/<name>.jpg. Corners there are pixels counted from 1, the
/// last one inside: a box covers [xmin - 1, xmax) here. Objects marked difficult are taken.
/// Throws Error(data) naming the file for anything that is not so: a missing file, XML that does
/// not parse, sizes and corners that are not finite numbers, names that leave the folder, classes
/// that were not chosen (unless they are to be ignored), a list that is empty or names a picture
/// twice. Pictures are not looked at.
AnnotatedPictures read_voc(const std::filesystem::path& root, const std::string& split,
                           const ClassChoice& choice);

/// The pictures of a COCO annotation file (instances, JSON), in its order, below `root`. A box is
/// x, y, width, height. Throws Error(data) likewise, also for ids that occur twice or point
/// nowhere.
AnnotatedPictures read_coco(const std::filesystem::path& file, const std::filesystem::path& root,
                            const ClassChoice& choice);

struct ResizedPictures {
    std::shared_ptr<const SampleSet> samples;
    std::int64_t narrow_boxes = 0;
};

/// Pictures resized as a whole to height x width; boxes follow. In training they are mirrored with
/// data.flip_probability and data.vertical_flip_probability. Boxes that get narrower or lower than
/// a pixel are left out and counted. A picture of another size than annotated is bad.
/// With data.decoded_cache_mib > 0 resized pictures are kept while the budget lasts.
/// Files that `staged` has are read there.
/// Throws Error(data) naming a picture with more than data.max_boxes boxes.
ResizedPictures make_annotated_samples(AnnotatedPictures pictures, const config::DataConfig& data,
                                       ImageSize size,
                                       std::shared_ptr<const StagedPictures> staged = nullptr);

}  // namespace hpcai::data
