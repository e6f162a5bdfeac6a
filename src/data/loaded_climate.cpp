// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <mutex>
#include <system_error>

#include <hpcai/base/text.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/data/data_duplicator.hpp>
#include <hpcai/data/record_set.hpp>
#include <hpcai/data/transcode.hpp>
#include <hpcai/records/record_fields.hpp>
#include <hpcai/storage/manifest.hpp>

#include "climate_set.hpp"
#include "read_at_one_rank.hpp"

namespace hpcai::data {
namespace {

namespace fs = std::filesystem;

struct ListedFile {
    std::filesystem::path path;
    std::uint64_t bytes = 0;   // on rank 0
    bool is_verified = false;  // a manifest in its folder lists it, and its SHA-256 matches

    HPCAI_RECORD(ListedFile, path, bytes, is_verified);
};

std::uint64_t size_of(const fs::path& path) {
    std::error_code error;
    const std::uint64_t bytes = fs::file_size(path, error);
    require(!error, ExitCode::data, "cannot read '{}': {}", path.string(), error.message());
    return bytes;
}

void require_same_size(const ListedFile& file) {
    const std::uint64_t here = size_of(file.path);
    require(here == file.bytes, ExitCode::data,
            "'{}' is not the same file for all ranks: {} bytes here, {} on rank 0",
            file.path.string(), here, file.bytes);
}

std::vector<ListedFile> list_locally(const std::string& path) {
    std::vector<ListedFile> files;
    std::error_code ignored;
    if (fs::is_regular_file(fs::path(path) / kRecordIndexName, ignored)) return files;
    for (const fs::path& file : climate_files_at(path)) {
        require(fs::is_regular_file(file, ignored), ExitCode::data,
                "cannot read '{}': not a regular file", file.string());
        require(printable(file.string()) == file.string(), ExitCode::data,
                "'{}': expected a name in UTF-8 without control characters",
                printable(file.string()));
        files.push_back({file, size_of(file), false});
    }
    return files;
}

/// The files of one data set, all in the folder `root`.
struct SetFiles {
    fs::path root;
    std::vector<std::string> names;

    HPCAI_RECORD(SetFiles, root, names);
};

SetFiles find_set_files(const std::string& path) {
    std::error_code error;
    SetFiles files;
    if (fs::is_regular_file(fs::path(path) / kRecordIndexName, error)) {
        files = {path, {kRecordIndexName}};
        for (const IndexedFile& file : read_record_index(path).files) {
            files.names.push_back(file.name);
        }
    } else {
        for (const fs::path& file : climate_files_at(path)) {
            files.root = file.has_parent_path() ? file.parent_path() : ".";
            files.names.push_back(file.filename().string());
        }
    }
    if (fs::is_regular_file(files.root / storage::kManifestName, error)) {
        files.names.push_back(storage::kManifestName);
    }
    return files;
}

/// Returns the path of the staged copy of `path`, or `path` itself if it is not staged.
std::string staged_path(const std::string& path, const fs::path& folder) {
    if (folder.empty()) return path;
    std::error_code error;
    return (fs::is_directory(path, error) ? folder : folder / fs::path(path).filename()).string();
}

/// Lists the HDF5 files at `path` on rank 0 and broadcasts the list, which is empty if `path` is a
/// folder of records. One rank per file compares it with the manifest in its folder, if there is
/// one. Throws Error(data) on every rank for an error of any rank. Collective.
std::vector<ListedFile> list_files(const std::string& path, comm::Communicator& ranks) {
    auto files = read_at_one_rank(ranks, [&] { return list_locally(path); });
    std::vector<std::int64_t> verified(files.size(), 0);
    const std::size_t count = ranks.size();
    // Synchronize after each file, so that no rank waits longer than the time for one file.
    for (std::size_t first = 0; first < files.size(); first += count) {
        comm::collective_try(ranks, [&] {
            const std::size_t mine = first + ranks.rank();
            if (mine >= files.size()) return;
            require_same_size(files[mine]);
            verified[mine] = storage::matches_manifest(files[mine].path) ? 1 : 0;
        });
    }
    ranks.all_reduce_sum(std::span(verified));
    for (std::size_t i = 0; i < files.size(); ++i) files[i].is_verified = verified[i] > 0;
    return files;
}

/// Copies the HDF5 files or records that data.staging selects and the manifest in their folder.
/// Returns `config` with the paths of the copies. Throws Error(data) if the files cannot be listed,
/// and the errors of the duplicator. Collective.
config::Config stage_climate(const config::Config& config, comm::Communicator& ranks,
                             DataDuplicator& duplicator) {
    const auto add = [&](Split split, const std::string& path) {
        const SetFiles files = read_at_one_rank(ranks, [&] { return find_set_files(path); });
        duplicator.add_files(split,
                             {files.root, static_cast<std::uint32_t>(files.names.size()),
                              [names = files.names](std::uint32_t file) { return names[file]; }});
    };
    add(Split::training, config.data.path);
    add(Split::validation, config.data.validation_path);
    duplicator.run();
    config::Config local = config;
    local.data.path = staged_path(config.data.path, duplicator.folder(Split::training));
    local.data.validation_path =
        staged_path(config.data.validation_path, duplicator.folder(Split::validation));
    return local;
}

constexpr const char* kNotFinite = "not all of its values are finite";

/// The configuration's requirements for files.
struct Requirements {
    SampleFormat format;
    bool is_augmented = false;
};

/// `source` is a ClimateFile or a RecordSet.
void require_grid(const Requirements& required, const auto& source, const std::string& file) {
    require(source.height() == required.format.height && source.width() == required.format.width,
            ExitCode::data,
            "{}: fields of {} x {} pixels, but workload.image_size x image_width is {} x {}", file,
            source.height(), source.width(), required.format.height, required.format.width);
}

void require_boxes(const Requirements& required, const std::vector<Box>& boxes,
                   const std::string& name) {
    require(static_cast<std::int64_t>(boxes.size()) <= required.format.max_boxes, ExitCode::data,
            "{}: {} boxes, but data.max_boxes is {}", name, boxes.size(),
            required.format.max_boxes);
    for (const Box& box : boxes) {
        require(box.category >= 1 && box.category <= kClimateCategories, ExitCode::data,
                "{}: a box has class {}, expected 1 to {}", name, box.category, kClimateCategories);
    }
}

SampleFormat with_dtype(SampleFormat format, tensor::DType dtype) {
    format.dtype = dtype;
    return format;
}

class RecordedClimate final : public ClimateSet {
public:
    RecordedClimate(RecordSet records, const std::string& folder, const Requirements& required)
        : ClimateSet(with_dtype(required.format, records.dtype()), records.statistics(),
                     required.is_augmented),
          records_(std::move(records)),
          folder_(folder) {
        require(records_.channels() == kClimateChannels, ExitCode::data,
                "{}: {} channels, expected {}", folder, records_.channels(), kClimateChannels);
        require_grid(required, records_, folder);
        for (std::int64_t sample = 0; sample < records_.samples(); ++sample) {
            require_boxes(required, records_.boxes(sample), records_.name(sample));
        }
    }

    std::vector<std::string> channel_names() const override { return records_.channel_names(); }
    std::vector<RecordSource> sources() const override { return records_.sources(); }
    std::int64_t samples() const override { return records_.samples(); }
    std::vector<Box> boxes(std::uint32_t sample) const override { return records_.boxes(sample); }
    std::string name(std::uint32_t sample) const override { return records_.name(sample); }
    std::string location(std::uint32_t sample) const override {
        return folder_ + ": " + name(sample);
    }

private:
    std::string write_fields(std::uint32_t sample, std::span<std::byte> fields) const override {
        std::ranges::copy(records_.record(sample), fields.begin());
        return all_finite(fields, format().dtype) ? "" : kNotFinite;
    }

    RecordSet records_;
    std::string folder_;
};

class Hdf5Climate final : public ClimateSet {
public:
    /// Sets that share `hdf5_mutex` serialize their reads with it.
    Hdf5Climate(const std::vector<ListedFile>& files, const Requirements& required,
                std::shared_ptr<std::mutex> hdf5_mutex)
        : ClimateSet(required.format, default_statistics(), required.is_augmented),
          hdf5_mutex_(std::move(hdf5_mutex)) {
        for (const ListedFile& listed : files) {
            require_same_size(listed);
            files_.emplace_back(listed.path,
                                ClimateFileSettings{.is_verified = listed.is_verified});
            const ClimateFile& file = files_.back();
            require_grid(required, file, listed.path.string());
            require(file.level() != GeopotentialLevel::hpa_100, ExitCode::data,
                    "{}: channel 13 is Z100, but HDF5 files are normalized with statistics of "
                    "Z1000; convert the file to records with data transcode",
                    listed.path.string());
            dropped_boxes_ += file.dropped_boxes();
            for (std::int64_t number = 0; number < file.samples(); ++number) {
                positions_.emplace_back(files_.size() - 1, number);
            }
        }
        for (std::uint32_t sample = 0; sample < positions_.size(); ++sample) {
            require_boxes(required, boxes(sample), name(sample));
        }
    }

    std::int64_t dropped_boxes() const { return dropped_boxes_; }
    std::vector<RecordSource> sources() const override {
        std::vector<RecordSource> sources;
        for (const ClimateFile& file : files_) {
            sources.push_back(
                {file.path().filename().string(), file.generator(), file.fingerprint()});
        }
        return sources;
    }

    std::int64_t samples() const override { return std::ssize(positions_); }
    std::vector<Box> boxes(std::uint32_t sample) const override {
        const auto [file, number] = positions_[sample];
        return files_[file].boxes(number);
    }
    std::string name(std::uint32_t sample) const override {
        const auto [file, number] = positions_[sample];
        return files_[file].name(number);
    }
    std::string location(std::uint32_t sample) const override {
        const auto [file, number] = positions_[sample];
        return fmt::format("{}/{}", files_[file].path().string(), number);
    }

private:
    std::string write_fields(std::uint32_t sample, std::span<std::byte> fields) const override {
        std::vector<float> planes(kClimateChannels * format().height * format().width);
        {
            const auto [file, number] = positions_[sample];
            const std::lock_guard lock(*hdf5_mutex_);
            files_[file].read(number, 1, planes);
        }
        write_normalized(planes, statistics(), format().dtype, fields);
        return all_finite(fields, format().dtype) ? "" : kNotFinite;
    }

    std::shared_ptr<std::mutex> hdf5_mutex_;
    std::vector<ClimateFile> files_;
    /// By sample: the index of its file, and its number in this file.
    std::vector<std::pair<std::size_t, std::int64_t>> positions_;
    std::int64_t dropped_boxes_ = 0;
};

/// `files` are those of list_files().
std::shared_ptr<const ClimateSet> open_set(const std::string& path,
                                           const std::vector<ListedFile>& files,
                                           const Requirements& required,
                                           const std::shared_ptr<std::mutex>& hdf5_mutex,
                                           std::vector<std::string>& notes) {
    if (files.empty()) return std::make_shared<RecordedClimate>(RecordSet(path), path, required);
    auto set = std::make_shared<Hdf5Climate>(files, required, hdf5_mutex);
    if (set->dropped_boxes() > 0) {
        notes.push_back(fmt::format("{}: boxes left out: {} without area inside the image", path,
                                    set->dropped_boxes()));
    }
    return set;
}

void require_same_channels(const ClimateSet& training, const ClimateSet& validation,
                           const config::DataConfig& data) {
    const std::vector<std::string> expected = training.channel_names();
    const std::vector<std::string> names = validation.channel_names();
    for (std::size_t c = 0; c < expected.size(); ++c) {
        require(names[c] == expected[c], ExitCode::data, "{}: channel {} is {}, but in {} it is {}",
                data.validation_path, c, names[c], data.path, expected[c]);
    }
}

/// Returns why the sets are not valid benchmark data: synthetic files, and files that occur twice.
std::vector<std::string> disqualifications_of(const std::vector<RecordSource>& training,
                                              const std::vector<RecordSource>& validation) {
    std::vector<std::string> disqualifications;
    std::map<std::uint32_t, std::string> known;  // by fingerprint: "training file 'a.h5'"
    const auto check_source = [&](const RecordSource& source, const char* which) {
        const std::string name = fmt::format("{} file '{}'", which, printable(source.name));
        if (!source.generator.empty()) {
            disqualifications.push_back(
                fmt::format("{} is synthetic, made by {}", name, printable(source.generator)));
        }
        const auto [old, is_new] = known.emplace(source.fingerprint, name);
        if (!is_new) disqualifications.push_back(name + " has the same contents as " + old->second);
    };
    for (const RecordSource& source : training) check_source(source, "training");
    for (const RecordSource& source : validation) check_source(source, "test");
    return disqualifications;
}

SampleSets open_sets(const config::Config& config, comm::Communicator& ranks) {
    SampleSets sets;
    const auto training_files = list_files(config.data.path, ranks);
    const auto validation_files = list_files(config.data.validation_path, ranks);
    comm::collective_try(ranks, [&] {
        const SampleFormat format = climate_format(config);
        const auto hdf5_mutex = std::make_shared<std::mutex>();
        std::vector<std::string> notes;
        const auto training =
            open_set(config.data.path, training_files, {format, config.data.climate_augmentation},
                     hdf5_mutex, notes);
        const auto validation = open_set(config.data.validation_path, validation_files,
                                         {format, false}, hdf5_mutex, notes);
        require_same_channels(*training, *validation, config.data);
        require(training->statistics() == validation->statistics(), ExitCode::data,
                "{}: mean and deviation differ from those of {}; transcode it with the statistics "
                "of the training set",
                config.data.validation_path, config.data.path);
        require(training->format() == validation->format(), ExitCode::data,
                "{}: the values are {}, but in {} they are {}", config.data.validation_path,
                tensor::name_of(validation->format().dtype), config.data.path,
                tensor::name_of(training->format().dtype));
        sets = {training, validation, std::move(notes)};
        if (config.workload.problem_class == config::ProblemClass::official) {
            sets.disqualifications =
                disqualifications_of(training->sources(), validation->sources());
        }
    });
    return sets;
}

}  // namespace

SampleSets load_climate(const config::Config& config, comm::Communicator& ranks,
                        DataDuplicator* duplicator) {
    if (duplicator == nullptr) return open_sets(config, ranks);
    return open_sets(stage_climate(config, ranks, *duplicator), ranks);
}

}  // namespace hpcai::data
