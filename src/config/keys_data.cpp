// SPDX-License-Identifier: Apache-2.0
#include "key_builder.hpp"

namespace hpcai::config {
namespace {

constexpr Bounds kProbability = between(0, 1);

std::vector<Key> source_keys(const SectionBuilder<DataConfig>& data) {
    return {
        data.choice<DataKind>(
            "kind", &DataConfig::kind,
            {{{DataKind::synthetic, "synthetic"},
              {DataKind::image_folder, "image_folder"},
              {DataKind::voc, "voc"},
              {DataKind::coco, "coco"},
              {DataKind::climate_synthetic, "climate_synthetic"},
              {DataKind::climate_hdf5, "climate_hdf5"}}},
            {.meaning = "Source of the samples. To classify: patterns made in memory, or JPEG "
                        "files in one folder per class. To find boxes in: JPEG files with "
                        "annotations of Pascal VOC or COCO; weather made in memory, or "
                        "ExtremeWeather files, as HDF5 or transcoded."}),
        data.text("path", &DataConfig::path,
                  {.meaning = "Training samples, relative to the working directory: the folder of "
                              "class folders; the VOC folder, with Annotations, ImageSets and "
                              "JPEGImages; the COCO annotation file; the HDF5 file, a folder of "
                              "them, or what data transcode made of them."}),
        data.text("validation_path", &DataConfig::validation_path,
                  {.meaning = "The same for the test samples; of voc the same folder when empty."}),
        data.choice<BadSamplePolicy>(
            "on_bad_sample", &DataConfig::on_bad_sample,
            {{{BadSamplePolicy::fail, "fail"},
              {BadSamplePolicy::skip, "skip"},
              {BadSamplePolicy::count, "count"}}},
            {.meaning = "What a damaged file does: ends the run with exit code 4; is skipped "
                        "(another sample takes its place in training, in evaluation it is not "
                        "scored); or is used as far as it could be decoded. Skipped and used ones "
                        "are named in the log and counted in the result."}),
        data.integer("max_boxes", &DataConfig::max_boxes,
                     {.meaning = "Most boxes of one sample; one with more is an error.",
                      .unit = "boxes",
                      .bounds = between(1, 1024)}),
        data.integer("synthetic_samples", &DataConfig::synthetic_samples,
                     {.meaning = "Training samples of the synthetic source.",
                      .unit = "samples",
                      .bounds = between(1, kMaxInt)}),
        data.integer("synthetic_validation_samples", &DataConfig::synthetic_validation_samples,
                     {.meaning = "Test samples of the synthetic source.",
                      .unit = "samples",
                      .bounds = between(1, kMaxInt)}),
    };
}

std::vector<Key> annotation_keys(const SectionBuilder<DataConfig>& data) {
    return {
        data.text("image_path", &DataConfig::image_path,
                  {.meaning = "Folder that the training pictures' file names of COCO start from."}),
        data.text("validation_image_path", &DataConfig::validation_image_path,
                  {.meaning = "The same for the test pictures."}),
        data.text("training_split", &DataConfig::training_split,
                  {.meaning = "List of training pictures of VOC: ImageSets/Main/<this>.txt."}),
        data.text("validation_split", &DataConfig::validation_split,
                  {.meaning = "The same for the test pictures."}),
        data.texts("class_names", &DataConfig::class_names,
                   {.meaning = "Classes of VOC or COCO to be found, objects of others being left "
                               "out; empty takes all that the training set has, sorted."}),
    };
}

std::vector<Key> preparation_keys(const SectionBuilder<DataConfig>& data) {
    return {
        data.number("random_area_minimum", &DataConfig::random_area_minimum,
                    {.meaning = "Smallest share of a picture that the random resized crop of "
                                "training may take; pictures with boxes are not cropped.",
                     .unit = "fraction",
                     .bounds = above_up_to(0, 1)}),
        data.number("flip_probability", &DataConfig::flip_probability,
                    {.meaning = "Chance that a training sample is mirrored left to right.",
                     .unit = "fraction",
                     .bounds = kProbability}),
        data.number("vertical_flip_probability", &DataConfig::vertical_flip_probability,
                    {.meaning = "Chance that a training sample is mirrored top to bottom, for "
                                "aerial pictures, which have no up.",
                     .unit = "fraction",
                     .bounds = kProbability}),
        data.boolean("climate_augmentation", &DataConfig::climate_augmentation,
                     {.meaning = "Vary weather in training by what turns it into other possible "
                                 "weather: hemispheres exchanged with a chance of one half and, "
                                 "for grids of all longitudes, the planet turned."}),
        data.choice<FieldPrecision>(
            "climate_precision", &DataConfig::climate_precision,
            {{{FieldPrecision::fp32, "fp32"},
              {FieldPrecision::fp16, "fp16"},
              {FieldPrecision::bf16, "bf16"}}},
            {.meaning = "Type of normalized weather as it is kept and copied to the device; "
                        "transcoded files have their own."}),
        data.numbers("mean", &DataConfig::mean,
                     {.meaning = "Mean of each channel, subtracted from the pixels.",
                      .unit = "of the full scale",
                      .bounds = between(0, 1)}),
        data.numbers("standard_deviation", &DataConfig::standard_deviation,
                     {.meaning = "Standard deviation of each channel, which the pixels are then "
                                 "divided by.",
                      .unit = "of the full scale",
                      .bounds = above_up_to(0, 1)}),
    };
}

std::vector<Key> feeding_keys(const SectionBuilder<DataConfig>& data) {
    return {
        data.integer("prefetch_batches", &DataConfig::prefetch_batches,
                     {.meaning = "Batches that each rank prepares ahead of its step.",
                      .unit = "batches",
                      .bounds = between(1, 1024)}),
        data.integer("decode_threads", &DataConfig::decode_threads,
                     {.meaning = "Threads of each rank that prepare samples; 0 chooses from the "
                                 "cores that the rank may use.",
                      .unit = "threads",
                      .bounds = between(0, 1024)}),
        data.integer(
            "decoded_cache_mib", &DataConfig::decoded_cache_mib,
            {.meaning = "Memory of each rank for decoded training pictures, or for weather "
                        "made in memory; 0 keeps none.",
             .unit = "MiB",
             .bounds = between(0, kMaxInt)}),
        data.integer("resident_mib", &DataConfig::resident_mib,
                     {.meaning = "Memory of each rank's GPU for decoded training pictures, which "
                                 "the GPU then crops, resizes and mirrors itself; pictures that "
                                 "find no place, and all at 0, are prepared on the CPU.",
                      .unit = "MiB",
                      .bounds = between(0, kMaxInt)}),
    };
}

std::vector<Key> staging_keys(const SectionBuilder<DataConfig>& data) {
    return {
        data.choice<Staging>(
            "staging", &DataConfig::staging,
            {{{Staging::none, "none"}, {Staging::training, "training"}, {Staging::all, "all"}}},
            {.meaning = "What is copied to each node's own disk before training, once per node and "
                        "checked by SHA-256: nothing; the training samples in the bootstraps of "
                        "the groups with ranks on the node, in a pipeline of the first "
                        "stage, with parts of the first; or also the test and out-of-bag samples "
                        "that the ranks "
                        "evaluate. Of HDF5 files and records all files. "
                        "What is not copied is read where it lies."}),
        data.text("staging_directory", &DataConfig::staging_directory,
                  {.meaning = "Directory of each node's own disk for the copies, which go to "
                              "hpcai500-stage-<user number> in it; it must exist. One run of a "
                              "user at a time has it."}),
        data.choice<StagingCleanup>(
            "staging_cleanup", &DataConfig::staging_cleanup,
            {{{StagingCleanup::keep, "keep"},
              {StagingCleanup::remove, "remove"},
              {StagingCleanup::remove_on_success, "remove_on_success"},
              {StagingCleanup::remove_on_failure, "remove_on_failure"}}},
            {.meaning =
                 "What becomes of a node's copies when the last of its ranks ends: they stay "
                 "for the next run, which checks them and copies what is missing (pictures "
                 "are packed anew where run.seed, the layout or anything else changes which of "
                 "them a node needs); are removed; or are removed only where all ranks of the "
                 "node completed their part, or only where one did not. What a killed run left "
                 "stays."}),
        data.integer("staging_pack_mib", &DataConfig::staging_pack_mib,
                     {.meaning = "Size of the files that staged pictures are packed into.",
                      .unit = "MiB",
                      .bounds = between(1, 65536)}),
        data.integer("staging_reserve_mib", &DataConfig::staging_reserve_mib,
                     {.meaning = "Space that staging leaves free on each node's disk; where there "
                                 "is less, nothing is copied and the run ends with exit code 2.",
                      .unit = "MiB",
                      .bounds = between(0, kMaxInt)}),
    };
}

}  // namespace

std::vector<Key> data_keys() {
    const SectionBuilder<DataConfig> data("data", &Config::data);
    std::vector<Key> all;
    for (auto make : {source_keys, annotation_keys, preparation_keys, feeding_keys, staging_keys}) {
        for (Key& key : make(data)) all.push_back(std::move(key));
    }
    return all;
}

}  // namespace hpcai::config
