// SPDX-License-Identifier: Apache-2.0
#include "section_keys.hpp"

namespace hpcai::config {

std::vector<Key> data_source_keys() {
    using C = DataConfig;
    using enum DataKind;
    using enum BadSamplePolicy;
    constexpr SectionKeys<&Config::data> key;
    return {
        key("kind", &C::kind,
            {{synthetic, "synthetic"},
             {image_folder, "image_folder"},
             {voc, "voc"},
             {coco, "coco"},
             {climate_synthetic, "climate_synthetic"},
             {climate_hdf5, "climate_hdf5"}},
            "Source of the samples. To classify: patterns made in memory, or JPEG files in one "
            "folder per class. To find boxes in: JPEG files with annotations of Pascal VOC or "
            "COCO; weather made in memory, or ExtremeWeather files, as HDF5 or transcoded."),
        key("path", &C::path,
            "Training samples, relative to the working directory: the folder of class folders; the "
            "VOC folder, with Annotations, ImageSets and JPEGImages; the COCO annotation file; the "
            "HDF5 file, a folder of them, or what data transcode made of them."),
        key("validation_path", &C::validation_path,
            "The same for the test samples; of voc the same folder when empty."),
        key("on_bad_sample", &C::on_bad_sample, {{fail, "fail"}, {skip, "skip"}, {count, "count"}},
            "What a damaged file does: ends the run with exit code 4; is skipped (another sample "
            "takes its place in training, in evaluation it is not scored); or is used as far as it "
            "could be decoded. Skipped and used ones are named in the log and counted in the "
            "result."),
        key("max_boxes", &C::max_boxes, between(1, 1024, "boxes"),
            "Most boxes of one sample; one with more is an error."),
        key("synthetic_samples", &C::synthetic_samples, between(1, kMaxInt, "samples"),
            "Training samples of the synthetic source."),
        key("synthetic_validation_samples", &C::synthetic_validation_samples,
            between(1, kMaxInt, "samples"), "Test samples of the synthetic source."),
        key("image_path", &C::image_path,
            "Folder that the training pictures' file names of COCO start from."),
        key("validation_image_path", &C::validation_image_path, "The same for the test pictures."),
        key("training_split", &C::training_split,
            "List of training pictures of VOC: ImageSets/Main/<this>.txt."),
        key("validation_split", &C::validation_split, "The same for the test pictures."),
        key("class_names", &C::class_names,
            "Classes of VOC or COCO to be found, objects of others being left out; empty takes all "
            "that the training set has, sorted."),
    };
}

std::vector<Key> data_preparation_keys() {
    using C = DataConfig;
    using enum FieldPrecision;
    constexpr SectionKeys<&Config::data> key;
    return {
        key("random_area_minimum", &C::random_area_minimum, above_up_to(0, 1, "fraction"),
            "Smallest share of a picture that the random resized crop of training may take; "
            "pictures with boxes are not cropped."),
        key("flip_probability", &C::flip_probability, between(0, 1, "fraction"),
            "Chance that a training sample is mirrored left to right."),
        key("vertical_flip_probability", &C::vertical_flip_probability, between(0, 1, "fraction"),
            "Chance that a training sample is mirrored top to bottom, for aerial pictures, which "
            "have no up."),
        key("climate_augmentation", &C::climate_augmentation,
            "Vary weather in training by what turns it into other possible weather: hemispheres "
            "exchanged with a chance of one half and, for grids of all longitudes, the planet "
            "turned."),
        key("climate_precision", &C::climate_precision,
            {{fp32, "fp32"}, {fp16, "fp16"}, {bf16, "bf16"}},
            "Type of normalized weather as it is kept and copied to the device; transcoded files "
            "have their own."),
        key("mean", &C::mean, between(0, 1, "of the full scale"),
            "Mean of each channel, subtracted from the pixels."),
        key("standard_deviation", &C::standard_deviation, above_up_to(0, 1, "of the full scale"),
            "Standard deviation of each channel, which the pixels are then divided by."),
    };
}

std::vector<Key> data_feeding_keys() {
    using C = DataConfig;
    using enum Staging;
    using enum StagingCleanup;
    constexpr SectionKeys<&Config::data> key;
    return {
        key("prefetch_batches", &C::prefetch_batches, between(1, 1024, "batches"),
            "Batches that each rank prepares ahead of its step."),
        key("decode_threads", &C::decode_threads, between(0, 1024, "threads"),
            "Threads of each rank that prepare samples; 0 chooses from the cores that the rank may "
            "use."),
        key("decoded_cache_mib", &C::decoded_cache_mib, between(0, kMaxInt, "MiB"),
            "Memory of each rank for decoded training pictures, or for weather made in memory; 0 "
            "keeps none."),
        key("resident_mib", &C::resident_mib, between(0, kMaxInt, "MiB"),
            "Memory of each rank's GPU for decoded training pictures, which the GPU then crops, "
            "resizes and mirrors itself; pictures that find no place, and all at 0, are prepared "
            "on the CPU."),
        key("staging", &C::staging, {{none, "none"}, {training, "training"}, {all, "all"}},
            "What is copied to each node's own disk before training, once per node and checked by "
            "SHA-256: nothing; the training samples in the bootstraps of the groups with ranks on "
            "the node, in a pipeline of the first stage, with parts of the first; or also the test "
            "and out-of-bag samples that the ranks evaluate. Of HDF5 files and records all files. "
            "What is not copied is read where it lies."),
        key("staging_directory", &C::staging_directory,
            "Directory of each node's own disk for the copies, which go to hpcai500-stage-<user "
            "number> in it; it must exist. One run of a user at a time has it."),
        key("staging_cleanup", &C::staging_cleanup,
            {{keep, "keep"},
             {remove, "remove"},
             {remove_on_success, "remove_on_success"},
             {remove_on_failure, "remove_on_failure"}},
            "What becomes of a node's copies when the last of its ranks ends: they stay for the "
            "next run, which checks them and copies what is missing (pictures are packed anew "
            "where run.seed, the layout or anything else changes which of them a node needs); are "
            "removed; or are removed only where all ranks of the node completed their part, or "
            "only where one did not. What a killed run left stays."),
        key("staging_pack_mib", &C::staging_pack_mib, between(1, 65536, "MiB"),
            "Size of the files that staged pictures are packed into."),
        key("staging_reserve_mib", &C::staging_reserve_mib, between(0, kMaxInt, "MiB"),
            "Space that staging leaves free on each node's disk; where there is less, nothing is "
            "copied and the run ends with exit code 2."),
    };
}

}  // namespace hpcai::config
