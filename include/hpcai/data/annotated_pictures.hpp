// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/config.hpp>
#include <hpcai/data/image.hpp>
#include <hpcai/data/image_codec.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/records/record_fields.hpp>

namespace hpcai::data {

struct AnnotatedPicture {
    std::string path;        // relative to the set's root
    ImageSize size;          // as stated in the annotation
    std::vector<Box> boxes;  // in pixels, inside the image; category = index of the class + 1

    HPCAI_RECORD(AnnotatedPicture, path, size, boxes);
};

/// Numbers of annotated objects that the set omits.
struct OmittedObjects {
    std::int64_t without_area = 0;   // boxes that have no area inside the image
    std::int64_t other_classes = 0;  // objects of classes that were not chosen
    std::int64_t crowds = 0;         // COCO's iscrowd

    HPCAI_RECORD(OmittedObjects, without_area, other_classes, crowds);
};

/// Images with boxes around objects. An image may have no box.
struct AnnotatedPictures {
    std::filesystem::path root;
    std::vector<std::string> classes;
    std::vector<AnnotatedPicture> pictures;
    OmittedObjects omitted;
    std::int64_t clipped_boxes = 0;  // kept boxes that exceeded their image

    HPCAI_RECORD(AnnotatedPictures, root, classes, pictures, omitted, clipped_boxes);
};

/// The classes whose objects are used.
struct ClassChoice {
    std::vector<std::string> names;  // by category - 1; if empty: all that occur, in byte order
    bool ignore_others = false;      // if false, an object of a class not in `names` is an error
};

/// Reads a Pascal VOC folder. ImageSets/Main/`split`.txt lists the images' names in sample order;
/// each has Annotations/<name>.xml and JPEGImages/<name>.jpg. VOC numbers pixels from 1 and
/// includes xmax, so a box becomes [xmin - 1, xmax); a box with xmin = xmax has no area. Includes
/// objects marked difficult. Does not open images. Throws Error(data), naming the file, if a file
/// is missing or has invalid XML, a corner is not finite, a side of an image is not an integer from
/// 1 to kMaxImageSide, or a path is outside the folder. Also throws for an object of a class not in
/// `choice` (unless ignore_others), for a list that is empty or has a name twice, and if `choice`
/// has no names and no image has an object. Throws Error(usage) if `choice` has a name twice.
AnnotatedPictures read_voc(const std::filesystem::path& root, const std::string& split,
                           const ClassChoice& choice);

/// Reads a COCO instance annotation file (JSON), in which a box is x, y, width and height. The
/// images are below `root` and keep the order of the file. Omits crowds (iscrowd). Throws like
/// read_voc(). Also throws Error(data) for an image id, category id or category name that occurs
/// twice, and for a reference to an unknown id.
AnnotatedPictures read_coco(const std::filesystem::path& file, const std::filesystem::path& root,
                            const ClassChoice& choice);

struct ResizedPictures {
    std::shared_ptr<const SampleSet> samples;
    std::int64_t narrow_boxes = 0;  // omitted, because they are less than a pixel wide or high
};

/// Makes samples that resize entire images and their boxes to `size`. Training samples are
/// mirrored with data.flip_probability and data.vertical_flip_probability. Omits and counts boxes
/// that become less than a pixel wide or high. An image whose size is not as annotated is a bad
/// sample. Caches resized images up to data.decoded_cache_mib. Reads files from `staged` if it
/// has them. Throws Error(data) naming an image with more than data.max_boxes boxes.
ResizedPictures make_annotated_samples(AnnotatedPictures pictures, const config::DataConfig& data,
                                       ImageSize size,
                                       std::shared_ptr<const StagedPictures> staged = nullptr);

}  // namespace hpcai::data
