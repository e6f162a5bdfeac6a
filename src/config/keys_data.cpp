// SPDX-License-Identifier: Apache-2.0
#include "section_keys.hpp"

namespace hpcai::config {

std::vector<Key> data_source_keys() {
    using C = DataConfig;
    using enum DataKind;
    using enum BadSamplePolicy;
    constexpr SectionKeys<&Config::data> key{"data"};
    return {
        key("kind", &C::kind,
            {{synthetic, "synthetic"},
             {image_folder, "image_folder"},
             {voc, "voc"},
             {coco, "coco"},
             {climate_synthetic, "climate_synthetic"},
             {climate_hdf5, "climate_hdf5"}},
            "Source of the samples. Classification: generated patterns, or JPEG and PNG files in "
            "one folder per class. Detection: JPEG files with VOC or COCO annotations. Weather: "
            "generated fields, or ExtremeWeather files (HDF5 or transcoded)."),
        key("path", &C::path,
            "Training samples. image_folder: folder of class folders, or output of `hpcai500 data "
            "index` or `data pack`. voc: folder with Annotations, ImageSets and JPEGImages. coco: "
            "annotation file. climate_hdf5: HDF5 file, folder of such files, or output of `data "
            "transcode`."),
        key("validation_path", &C::validation_path,
            "Test samples, in the form of data.path; for voc, empty uses data.path."),
        key("on_bad_sample", &C::on_bad_sample, {{fail, "fail"}, {skip, "skip"}, {count, "count"}},
            "Action for a damaged file: fail (exit code 4), skip (training uses another sample, "
            "evaluation ignores the file), or count (use what was decoded). The log names damaged "
            "files."),
        key("max_boxes", &C::max_boxes, between(1, 1024, "boxes"),
            "Maximum number of boxes of a sample; more are an error."),
        key("synthetic_samples", &C::synthetic_samples, between(1, kMaxInt, "samples"),
            "Training samples of a synthetic source."),
        key("synthetic_validation_samples", &C::synthetic_validation_samples,
            between(1, kMaxInt, "samples"), "Test samples of a synthetic source."),
        key("image_path", &C::image_path, "coco: folder of the training images."),
        key("validation_image_path", &C::validation_image_path, "coco: folder of the test images."),
        key("training_split", &C::training_split,
            "voc: list of training images, ImageSets/Main/<value>.txt."),
        key("validation_split", &C::validation_split, "voc: list of test images."),
        key("class_names", &C::class_names,
            "Classes to detect with voc or coco; empty uses all classes of the training set, "
            "sorted."),
    };
}

std::vector<Key> data_preparation_keys() {
    using C = DataConfig;
    using enum FieldPrecision;
    constexpr SectionKeys<&Config::data> key{"data"};
    return {
        key("random_area_minimum", &C::random_area_minimum, above_up_to(0, 1, "fraction"),
            "Minimum area fraction of the random resized crop in training; images with boxes are "
            "not cropped."),
        key("flip_probability", &C::flip_probability, between(0, 1, "fraction"),
            "Probability of mirroring a training sample left to right."),
        key("vertical_flip_probability", &C::vertical_flip_probability, between(0, 1, "fraction"),
            "Probability of mirroring a training sample top to bottom, for aerial images."),
        key("climate_augmentation", &C::climate_augmentation,
            "Augments training weather: swaps hemispheres with probability 0.5 and, on grids of "
            "all longitudes, rotates the planet."),
        key("climate_precision", &C::climate_precision,
            {{fp32, "fp32"}, {fp16, "fp16"}, {bf16, "bf16"}},
            "Data type of normalized weather in memory and in copies to the device; transcoded "
            "files have their own."),
        key("mean", &C::mean, between(0, 1, "of the full scale"),
            "Mean of each channel, subtracted from pixels."),
        key("standard_deviation", &C::standard_deviation, above_up_to(0, 1, "of the full scale"),
            "Standard deviation of each channel, by which pixels are then divided."),
    };
}

std::vector<Key> data_feeding_keys() {
    using C = DataConfig;
    using enum Staging;
    using enum StagingCleanup;
    constexpr SectionKeys<&Config::data> key{"data"};
    return {
        key("prefetch_batches", &C::prefetch_batches, between(1, 1024, "batches"),
            "Batches that each rank prepares ahead."),
        key("decode_threads", &C::decode_threads, between(0, 1024, "threads"),
            "Sample preparation threads per rank; 0 derives them from the rank's cores."),
        key("decoded_cache_mib", &C::decoded_cache_mib, between(0, kMaxInt, "MiB"),
            "Memory per rank for decoded training images or generated weather; 0 disables it."),
        key("resident_mib", &C::resident_mib, between(0, kMaxInt, "MiB"),
            "GPU memory per rank for decoded training images, which the GPU crops, resizes and "
            "mirrors. The CPU prepares images that do not fit."),
        key("decoder", &C::decoder, {{Decoder::cpu, "cpu"}, {Decoder::gpu, "gpu"}},
            "Decoder of training images: cpu, with the same pixels on every machine, or gpu "
            "(nvJPEG), whose pixels differ slightly. The CPU decodes images that nvJPEG cannot "
            "decode."),
        key("staging", &C::staging, {{none, "none"}, {training, "training"}, {all, "all"}},
            "Data copied to node-local disks before training, once per node and checked by "
            "SHA-256: none, training (the training samples that the node's ranks read), or all "
            "(also test and out-of-bag samples). HDF5 and transcoded files are copied whole to "
            "every node."),
        key("staging_directory", &C::staging_directory,
            "Existing node-local directory. Its folder hpcai500-stage-<user number> has the "
            "copies, for one run of a user at a time."),
        key("staging_cleanup", &C::staging_cleanup,
            {{keep, "keep"},
             {remove, "remove"},
             {remove_on_success, "remove_on_success"},
             {remove_on_failure, "remove_on_failure"}},
            "When to remove a node's copies after its last rank ends: never, always, only if all "
            "its ranks succeeded, or only if one failed. The next run checks kept copies and "
            "adds missing files. If the node then needs other images, all its images are copied "
            "again. Killed runs remove nothing."),
        key("staging_pack_mib", &C::staging_pack_mib, between(1, 65536, "MiB"),
            "Size of the files into which staged images are packed."),
        key("staging_reserve_mib", &C::staging_reserve_mib, between(0, kMaxInt, "MiB"),
            "Space to leave free on each node's disk; if there is less, the run ends with exit "
            "code 2."),
    };
}

}  // namespace hpcai::config
