// SPDX-License-Identifier: Apache-2.0
#include <system_error>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/data/annotated_pictures.hpp>
#include <hpcai/data/data_duplicator.hpp>
#include <hpcai/data/image_codec.hpp>
#include <hpcai/data/sample_index.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>

#include "climate_set.hpp"
#include "read_at_one_rank.hpp"

namespace hpcai::data {
namespace {

void require_three_channels(const config::Config& config) {
    require(config.workload.channels == kImageChannels, ExitCode::usage,
            "workload.channels: images have 3 channels, got {}", config.workload.channels);
}

/// The copies on this node, by Split; null if samples are read from the shared file system.
using StagedCopies = std::array<std::shared_ptr<const StagedPictures>, 2>;

StagedCopies stage_pictures(DataDuplicator* duplicator, const StagingRequest& training,
                            const StagingRequest& validation) {
    if (duplicator == nullptr) return {};
    duplicator->add_pictures(Split::training, training);
    duplicator->add_pictures(Split::validation, validation);
    duplicator->run();
    return {duplicator->pictures(Split::training), duplicator->pictures(Split::validation)};
}

StagingRequest staging_request(const std::filesystem::path& root, const auto& samples) {
    return {root, static_cast<std::uint32_t>(samples.size()),
            [&samples](std::uint32_t sample) { return samples[sample].path; }};
}

StagingRequest staging_request(const SampleIndex& index) {
    StagingRequest request = staging_request(index.root, index.samples);
    if (index.is_packed()) request.packed = &index;
    return request;
}

SampleSets folder_sets(const config::Config& config, comm::Communicator& ranks,
                       DataDuplicator* duplicator) {
    require_three_channels(config);
    const bool is_staged = duplicator != nullptr;
    SampleIndex training = load_samples(config.data.path, ranks, is_staged);
    SampleIndex validation = load_samples(config.data.validation_path, ranks, is_staged);
    require_classes(training, config.workload.classes);
    require_same_classes(training, validation);
    const auto [staged, staged_validation] =
        stage_pictures(duplicator, staging_request(training), staging_request(validation));
    const int size = config.workload.image_size;
    SampleSets sets;
    if (config.workload.problem_class == config::ProblemClass::official) {
        sets.disqualifications = disqualifications_of_names(training, validation);
    }
    sets.training = make_folder_samples(std::move(training), config.data, size, staged);
    sets.validation =
        make_folder_samples(std::move(validation), config.data, size, staged_validation);
    return sets;
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

/// Throws for a class without objects, because its name is probably wrong.
void require_every_class(const AnnotatedPictures& set) {
    std::vector<bool> seen(set.classes.size());
    for (const AnnotatedPicture& picture : set.pictures) {
        for (const Box& box : picture.boxes) seen[box.category - 1] = true;
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
        require(seen[i], ExitCode::data, "{}: no object of class '{}' (data.class_names)",
                set.root.string(), set.classes[i]);
    }
}

SampleSets annotated_sets(const config::Config& config, comm::Communicator& ranks,
                          DataDuplicator* duplicator) {
    require_three_channels(config);
    ClassChoice choice{config.data.class_names, !config.data.class_names.empty()};
    AnnotatedPictures training = read_at_one_rank(ranks, [&] {
        AnnotatedPictures read = read_training(config.data, choice);
        require_every_class(read);
        return read;
    });
    require(std::ssize(training.classes) == config.workload.classes, ExitCode::data,
            "{}: classes with objects: {}, but workload.classes is {}", training.root.string(),
            training.classes.size(), config.workload.classes);
    choice.names = training.classes;
    AnnotatedPictures validation =
        read_at_one_rank(ranks, [&] { return read_validation(config.data, choice); });
    const auto [staged, staged_validation] =
        stage_pictures(duplicator, staging_request(training.root, training.pictures),
                       staging_request(validation.root, validation.pictures));
    const ImageSize size{config::image_width(config), config.workload.image_size};
    config::DataConfig uncached = config.data;
    uncached.decoded_cache_mib = 0;  // the cache is for training images
    SampleSets sets;
    const auto add = [&](AnnotatedPictures& read, const config::DataConfig& data,
                         std::shared_ptr<const StagedPictures> copies, const char* which) {
        const OmittedObjects omitted = read.omitted;
        ResizedPictures resized =
            make_annotated_samples(std::move(read), data, size, std::move(copies));
        if (omitted != OmittedObjects{} || resized.narrow_boxes > 0) {
            sets.notes.push_back(fmt::format(
                "{} annotations left out: {} without area, {} less than a pixel wide or high, {} "
                "of other classes, {} crowds",
                which, omitted.without_area, resized.narrow_boxes, omitted.other_classes,
                omitted.crowds));
        }
        return std::move(resized.samples);
    };
    sets.training = add(training, config.data, staged, "training");
    sets.validation = add(validation, uncached, staged_validation, "test");
    return sets;
}

SampleSets open_sets(const config::Config& config, comm::Communicator& ranks,
                     DataDuplicator* duplicator) {
    switch (config.data.kind) {
        case config::DataKind::synthetic:
            return {make_synthetic_samples(config, Split::training),
                    make_synthetic_samples(config, Split::validation),
                    {}};
        case config::DataKind::image_folder:
            return folder_sets(config, ranks, duplicator);
        case config::DataKind::voc:
        case config::DataKind::coco:
            return annotated_sets(config, ranks, duplicator);
        case config::DataKind::climate_synthetic:
            return make_synthetic_climate(config);
        case config::DataKind::climate_hdf5:
            return load_climate(config, ranks, duplicator);
    }
    return {};
}

std::string digest_of(const SampleSets& samples, config::ProblemClass problem_class) {
    storage::Sha256 digest;
    for (const SampleSet* set : {samples.training.get(), samples.validation.get()}) {
        digest.update(storage::bytes_of(fmt::format("{} samples\n", set->samples())));
        for (std::uint32_t sample = 0; sample < set->samples(); ++sample) {
            digest.update(
                storage::bytes_of(fmt::format("{} {}\n", set->label(sample), set->name(sample))));
            if (problem_class == config::ProblemClass::official) continue;
            try {
                digest.update(set->contents(sample));
            } catch (const DecodeError& error) {
                throw Error(ExitCode::data,
                            fmt::format("{}: {}", set->location(sample), error.what()));
            }
            for (const Box& box : set->boxes(sample)) {
                digest.update(storage::bytes_of(
                    fmt::format("{} {} {} {} {}\n", box.category, box.x1, box.y1, box.x2, box.y2)));
            }
        }
    }
    return digest.finish_hex();
}

class Subset final : public SampleSet {
public:
    Subset(std::shared_ptr<const SampleSet> samples, std::vector<std::uint32_t> chosen)
        : samples_(std::move(samples)), chosen_(std::move(chosen)) {
        for (const std::uint32_t sample : chosen_) {
            ensure(sample < samples_->samples(), "sample {} of {}", sample, samples_->samples());
        }
    }

    std::int64_t samples() const override { return std::ssize(chosen_); }
    int classes() const override { return samples_->classes(); }
    const SampleFormat& format() const override { return samples_->format(); }
    std::int32_t label(std::uint32_t i) const override { return samples_->label(chosen_[i]); }
    std::vector<Box> boxes(std::uint32_t i) const override { return samples_->boxes(chosen_[i]); }
    std::string class_name(std::int32_t category) const override {
        return samples_->class_name(category);
    }
    std::string name(std::uint32_t i) const override { return samples_->name(chosen_[i]); }
    std::string location(std::uint32_t i) const override { return samples_->location(chosen_[i]); }
    std::string training_sample(std::uint32_t i, CounterStream random,
                                const SampleView& out) const override {
        return samples_->training_sample(chosen_[i], std::move(random), out);
    }
    std::string evaluation_sample(std::uint32_t i, const SampleView& out) const override {
        return samples_->evaluation_sample(chosen_[i], out);
    }

private:
    std::shared_ptr<const SampleSet> samples_;
    std::vector<std::uint32_t> chosen_;  // by number in the subset
};

/// Moves a share of the training samples to the hold-out. Throws Error(data) if a set is empty.
void hold_out_samples(double share, SampleSets& sets) {
    std::vector<std::uint32_t> trained, held_out;
    for (std::uint32_t sample = 0; sample < sets.training->samples(); ++sample) {
        (is_held_out(sets.training->name(sample), share) ? held_out : trained).push_back(sample);
    }
    require(!trained.empty() && !held_out.empty(), ExitCode::data,
            "search.hold_out {} holds out {} of {} training samples; expected some but not all",
            share, held_out.size(), sets.training->samples());
    sets.hold_out = make_subset(sets.training, std::move(held_out));
    sets.training = make_subset(sets.training, std::move(trained));
}

}  // namespace

bool is_held_out(const std::string& name, double share) {
    const std::string digest = storage::sha256_hex(storage::bytes_of(name));
    return static_cast<double>(std::stoul(digest.substr(0, 8), nullptr, 16)) / 0x1p32 < share;
}

std::vector<std::byte> SampleSet::contents(std::uint32_t sample) const {
    std::vector<std::byte> pixels(format().pixel_bytes());
    std::vector<float> boxes(format().box_values());
    evaluation_sample(sample, {pixels, boxes});  // if damaged: grey or partial images, zero fields
    return pixels;
}

DecodedImage SampleSet::record_warning(std::uint32_t sample, DecodedImage decoded) const {
    if (!decoded.warning.empty() && decoded.damage.empty())
        warned_.record(sample, name(sample), decoded.warning);
    return decoded;
}

DecodedImage SampleSet::decode_full_size(std::uint32_t sample) const {
    throw Error(ExitCode::internal, fmt::format("{} cannot be decoded at full size", name(sample)));
}

TrainingView SampleSet::training_view(ImageSize /*size*/, CounterStream /*random*/) const {
    throw Error(ExitCode::internal, "these samples have no training view");
}

void require_data_paths(const config::Config& config) {
    const config::DataConfig& data = config.data;
    using config::DataKind;
    if (data.kind == DataKind::synthetic || data.kind == DataKind::climate_synthetic) return;
    // The message names the key, because a run that is resumed elsewhere may need other paths.
    for (const auto& [key, path] : {std::pair{"path", data.path},
                                    {"validation_path", data.validation_path},
                                    {"image_path", data.image_path},
                                    {"validation_image_path", data.validation_image_path}}) {
        std::error_code error;
        const std::filesystem::path wanted = path;
        if (path.empty() || std::filesystem::exists(wanted, error)) continue;
        const std::string what = error ? error.message() : "does not exist";
        const std::string where = wanted.is_absolute()
                                      ? ""
                                      : fmt::format(" in the working directory '{}'",
                                                    std::filesystem::current_path(error).string());
        const bool is_mini = config.workload.problem_class == config::ProblemClass::mini;
        throw Error(
            ExitCode::data,
            fmt::format("data.{}: '{}' {}{}{}", key, path, what, where,
                        is_mini ? "; `hpcai500 data generate mini` generates these samples" : ""));
    }
}

config::Config load_config(const config::Sources& sources) {
    config::Config config = config::load(sources);
    if (config.workload.classes > 0) return config;
    if (config::has_fields(config.data)) {
        config.workload.classes = kClimateCategories;
        return config;
    }
    config::locate_errors(sources, [&] { require_data_paths(config); });
    const auto names = config.data.kind == config::DataKind::image_folder
                           ? class_names(config.data.path)
                       : config.data.class_names.empty() ? read_training(config.data, {}).classes
                                                         : config.data.class_names;
    config.workload.classes = static_cast<int>(names.size());
    require(config.workload.classes > 1 || task_of(config.workload) != config::Task::classification,
            ExitCode::data, "{}: expected two or more classes, got one", config.data.path);
    return config;
}

SampleSets make_sample_sets(const config::Config& config, comm::Communicator& ranks,
                            DataDuplicator* duplicator) {
    comm::collective_try(ranks, [&] {
        if (ranks.rank() == 0) require_data_paths(config);
    });
    SampleSets sets = open_sets(config, ranks, duplicator);
    sets.sha256 =
        read_at_one_rank(ranks, [&] { return digest_of(sets, config.workload.problem_class); });
    if (config::is_search(config.workload)) hold_out_samples(config.search.hold_out, sets);
    if (duplicator != nullptr) sets.staging = duplicator->result();
    for (const std::string& note : sets.staging.notes) sets.notes.push_back(note);
    return sets;
}

std::shared_ptr<const SampleSet> make_subset(std::shared_ptr<const SampleSet> samples,
                                             std::vector<std::uint32_t> chosen) {
    return std::make_shared<Subset>(std::move(samples), std::move(chosen));
}

}  // namespace hpcai::data
