// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <nlohmann/json.hpp>

#include <hpcai/data/climate_file.hpp>
#include <hpcai/data/generate.hpp>
#include <hpcai/data/photograph.hpp>
#include <hpcai/storage/file.hpp>

#include "worker_pool.hpp"

namespace hpcai::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDescriptionName = "photographs.json";
constexpr std::size_t kMaxDescriptionBytes = 1 << 16;

struct SplitFolder {
    Split split;
    const char* folder;
    int per_class;
};

std::array<SplitFolder, 2> split_folders(const GenerateOptions& options) {
    return {{{Split::training, "train", options.training_per_class},
             {Split::validation, "val", options.validation_per_class}}};
}

std::string describe(const GenerateOptions& options) {
    return nlohmann::json{{"schema", "hpcai500-photographs-1"},
                          {"classes", options.classes},
                          {"training_per_class", options.training_per_class},
                          {"validation_per_class", options.validation_per_class},
                          {"size", options.size},
                          {"seed", options.seed},
                          {"quality", options.quality}}
               .dump(1) +
           "\n";
}

bool has_same_set(const GenerateOptions& options) {
    try {
        const fs::path description = options.directory / kDescriptionName;
        if (storage::read_file_text(description, kMaxDescriptionBytes) != describe(options)) {
            return false;
        }
        for (const SplitFolder& split_folder : split_folders(options)) {
            const SampleIndex index = scan_image_folder(options.directory / split_folder.folder);
            const auto expected = std::size_t{1} * options.classes * split_folder.per_class;
            if (index.samples.size() != expected) return false;
        }
    } catch (const Error&) {
        return false;
    }
    return true;
}

/// Returns whether the set exists. Throws Error(usage) if `directory` has other contents.
bool is_generated(const GenerateOptions& options) {
    const fs::path& directory = options.directory;
    std::error_code error;
    if (!fs::exists(directory, error)) return false;
    require(fs::is_directory(directory, error), ExitCode::usage, "{}: exists and is not a folder",
            directory.string());
    if (fs::is_empty(directory, error)) return false;
    require(!error, ExitCode::usage, "{}: {}", directory.string(), error.message());
    require(has_same_set(options), ExitCode::usage,
            "{}: is not empty and not a complete set with the same options; remove it or choose "
            "another directory",
            directory.string());
    return true;
}

void write_file(const fs::path& path, storage::Bytes bytes) {
    std::ofstream out(path, std::ios::binary);
    out << storage::text_of(bytes);
    out.close();
    require(out.good(), ExitCode::usage, "{}: cannot be written: {}", path.string(),
            std::strerror(errno));
}

void write_pictures(const GenerateOptions& options, const SplitFolder& split_folder,
                    const fs::path& root, int threads) {
    for (int label = 0; label < options.classes; ++label) {
        fs::create_directories(root / split_folder.folder / photograph_class_name(label));
    }
    const PhotographSet set{options.classes, options.size, options.seed};
    const std::int64_t pictures = std::int64_t{options.classes} * split_folder.per_class;
    parallel_for(pictures, threads, [&](std::int64_t i) {
        const int label = static_cast<int>(i / split_folder.per_class);
        const auto number = static_cast<std::uint32_t>(i % split_folder.per_class);
        const Image image = make_photograph(set, split_folder.split, label, number);
        const std::vector<std::uint8_t> bytes = encode_jpeg(image.view(), options.quality);
        write_file(root / split_folder.folder / photograph_class_name(label) /
                       fmt::format("{:06}.jpg", number),
                   std::as_bytes(std::span(bytes)));
    });
}

std::map<std::string, std::string> attributes_of(const GenerateClimateOptions& options) {
    std::map<std::string, std::string> attributes{
        {"generator", "hpcai500-climate-2"},
        {"seed", fmt::format("{}", options.settings.seed)},
        {"split", options.split == Split::training ? "training" : "validation"}};
    for (const ClimateNumber& number : kClimateNumbers) {
        attributes[number.name] = fmt::format("{}", options.settings.*number.setting);
    }
    return attributes;
}

}  // namespace

bool generate_photographs(const GenerateOptions& options, int threads) {
    require(!options.directory.empty(), ExitCode::usage, "data generate: no directory is given");
    if (is_generated(options)) return false;
    storage::PendingPath set(options.directory);
    try {
        for (const SplitFolder& split_folder : split_folders(options)) {
            write_pictures(options, split_folder, set.path(), threads);
        }
        write_file(set.path() / kDescriptionName, storage::bytes_of(describe(options)));
    } catch (const fs::filesystem_error& error) {
        throw Error(ExitCode::usage,
                    fmt::format("{}: cannot be written: {}", options.directory.string(),
                                error.code().message()));
    }
    set.commit();
    return true;
}

void generate_climate(const GenerateClimateOptions& options, int threads) {
    std::error_code error;
    require(!fs::exists(options.file, error), ExitCode::usage,
            "{}: exists already; remove it or choose another name", options.file.string());
    const ClimateGenerator generator(options.settings);
    ClimateFileWriter writer(options.file, {options.samples, options.settings.height,
                                            options.settings.width, attributes_of(options)});
    struct GeneratedSample {
        std::vector<float> fields;
        std::vector<Box> boxes;
    };
    std::vector<GeneratedSample> block(threads);
    for (GeneratedSample& sample : block) sample.fields.resize(generator.elements());
    for (std::int64_t first = 0; first < options.samples; first += threads) {
        const std::int64_t count = std::min<std::int64_t>(threads, options.samples - first);
        parallel_for(count, threads, [&](std::int64_t i) {
            GeneratedSample& sample = block[i];
            generator.sample(options.split, static_cast<std::uint32_t>(first + i),
                             FieldLayout::channels_first, sample.fields, sample.boxes);
        });
        for (std::int64_t i = 0; i < count; ++i) {
            const GeneratedSample& sample = block[i];
            writer.write(first + i, sample.fields, sample.boxes);
        }
    }
    writer.finish();
}

std::vector<fs::path> generate_mini(const fs::path& directory, int threads) {
    std::vector<fs::path> kept;
    // 24 classes of 64 training and 64 test images, 64 pixels on the longer side; seed 500
    const GenerateOptions photographs{directory / "photographs", 24, 64, 64, 64, 500};
    if (!generate_photographs(photographs, threads)) kept.push_back(photographs.directory);
    const fs::path weather = directory / "weather";
    std::error_code error;
    fs::create_directories(weather, error);
    require(!error, ExitCode::usage, "{}: {}", weather.string(), error.message());
    const ClimateSettings settings{.height = 96, .width = 128, .seed = 500};
    for (const auto& [name, split] :
         {std::pair{"train.h5", Split::training}, {"test.h5", Split::validation}}) {
        const bool is_kept = fs::exists(weather / name, error);
        if (is_kept) kept.push_back(weather / name);
        if (!is_kept) generate_climate({weather / name, 512, split, settings}, threads);
    }
    return kept;
}

}  // namespace hpcai::data
