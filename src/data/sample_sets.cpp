// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <hpcai/base/error.hpp>
#include <hpcai/data/annotated_pictures.hpp>
#include <hpcai/data/climate_samples.hpp>
#include <hpcai/data/sample_set.hpp>

namespace hpcai::data {

namespace {

SampleSets synthetic_sets(const config::Config& config, comm::Communicator&) {
    return {make_synthetic_samples(config, Split::training),
            make_synthetic_samples(config, Split::validation)};
}

void require_three_channels(const config::Config& config) {
    require(config.workload.channels == kImageChannels, ExitCode::usage,
            "workload.channels: pictures have 3 channels, got {}", config.workload.channels);
}

SampleSets folder_sets(const config::Config& config, comm::Communicator& group) {
    require_three_channels(config);
    SampleIndex training = load_samples(config.data.path, group);
    SampleIndex validation = load_samples(config.data.validation_path, group);
    require_classes(training, config.workload.classes);
    require_same_classes(training, validation);
    const int image_size = config.workload.image_size;
    return {make_folder_samples(std::move(training), config.data, image_size),
            make_folder_samples(std::move(validation), config.data, image_size)};
}

AnnotatedPictures read_training(const config::DataConfig& data, const ClassChoice& choice) {
    return data.kind == config::DataKind::voc ? read_voc(data.path, data.training_split, choice)
                                              : read_coco(data.path, data.image_path, choice);
}

AnnotatedPictures read_validation(const config::DataConfig& data, const ClassChoice& choice) {
    if (data.kind != config::DataKind::voc) {
        return read_coco(data.validation_path, data.validation_image_path, choice);
    }
    return read_voc(data.validation_path.empty() ? data.path : data.validation_path,
                    data.validation_split, choice);
}

/// A class that is not there is most likely one whose name is wrong.
void require_every_class(const AnnotatedPictures& set) {
    std::vector<bool> seen(set.classes.size());
    for (const AnnotatedPicture& picture : set.pictures) {
        for (const Box& box : picture.boxes)
            seen[static_cast<std::size_t>(box.category) - 1] = true;
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
        require(seen[i], ExitCode::data, "{}: no object of class '{}' (data.class_names)",
                set.root.string(), set.classes[i]);
    }
}

std::string left_out_note(const LeftOut& left_out, std::int64_t narrow, const char* which) {
    if (left_out == LeftOut{} && narrow == 0) return "";
    return fmt::format(
        "{} annotations left out: {} without area, {} less than a pixel wide or high, {} of other "
        "classes, {} crowds",
        which, left_out.without_area, narrow, left_out.other_classes, left_out.crowds);
}

SampleSets annotated_sets(const config::Config& config, comm::Communicator& group) {
    require_three_channels(config);
    ClassChoice choice{config.data.class_names, !config.data.class_names.empty()};
    AnnotatedPictures training = read_at_one_rank(group, [&] {
        AnnotatedPictures read = read_training(config.data, choice);
        require_every_class(read);
        return read;
    });
    require(training.classes.size() == static_cast<std::size_t>(config.workload.classes),
            ExitCode::data, "{}: {} classes with objects, but workload.classes is {}",
            training.root.string(), training.classes.size(), config.workload.classes);
    choice.names = training.classes;
    AnnotatedPictures validation =
        read_at_one_rank(group, [&] { return read_validation(config.data, choice); });
    const ImageSize size{config::image_width(config), config.workload.image_size};
    config::DataConfig uncached = config.data;
    uncached.decoded_cache_mib = 0;  // which is for training pictures
    SampleSets sets;
    const auto add = [&](AnnotatedPictures& read, const config::DataConfig& data,
                         const char* which) {
        const LeftOut left_out = read.left_out;
        ResizedPictures resized = make_annotated_samples(std::move(read), data, size);
        const std::string note = left_out_note(left_out, resized.narrow_boxes, which);
        if (!note.empty()) sets.notes.push_back(note);
        return std::move(resized.samples);
    };
    sets.training = add(training, config.data, "training");
    sets.validation = add(validation, uncached, "test");
    return sets;
}

}  // namespace

SampleSets make_sample_sets(const config::Config& config, comm::Communicator& group) {
    switch (config.data.kind) {
        case config::DataKind::synthetic:
            return synthetic_sets(config, group);
        case config::DataKind::image_folder:
            return folder_sets(config, group);
        case config::DataKind::voc:
        case config::DataKind::coco:
            return annotated_sets(config, group);
        case config::DataKind::climate_synthetic:
            return make_synthetic_climate(config);
        case config::DataKind::climate_hdf5:
            return load_climate(config, group);
    }
    return {};
}

}  // namespace hpcai::data
