// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/generate.hpp>
#include <hpcai/data/jpeg.hpp>
#include <hpcai/data/photograph.hpp>

#include "worker_pool.hpp"

namespace hpcai::data {

namespace {

namespace fs = std::filesystem;

constexpr const char* kDescriptionName = "photographs.json";
constexpr int kMaximumPerClass = 1'000'000;

struct Part {
    Split split;
    const char* folder;
    int per_class;
};

std::array<Part, 2> parts_of(const GenerateOptions& options) {
    return {{{Split::training, "train", options.training_per_class},
             {Split::validation, "val", options.validation_per_class}}};
}

void require_range(const char* name, int value, int low, int high) {
    require(value >= low && value <= high, ExitCode::usage,
            "data generate: {}: expected {} to {}, got {}", name, low, high, value);
}

void check(const GenerateOptions& options) {
    require(!options.directory.empty(), ExitCode::usage, "data generate: no directory is given");
    require_range("classes", options.classes, 1, kMaximumPhotographClasses);
    require_range("training pictures per class", options.training_per_class, 1, kMaximumPerClass);
    require_range("validation pictures per class", options.validation_per_class, 1,
                  kMaximumPerClass);
    require_range("size", options.size, 16, 4096);
    require_range("quality", options.quality, 1, 100);
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

std::string text_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool holds_the_same(const GenerateOptions& options) {
    if (text_of(options.directory / kDescriptionName) != describe(options)) return false;
    try {
        for (const Part& part : parts_of(options)) {
            const SampleIndex index = scan_image_folder(options.directory / part.folder);
            const auto expected = static_cast<std::size_t>(options.classes) *
                                  static_cast<std::size_t>(part.per_class);
            if (index.samples.size() != expected) return false;
        }
    } catch (const Error&) {
        return false;
    }
    return true;
}

/// True when the set is there already.
bool already_there(const GenerateOptions& options) {
    const fs::path& directory = options.directory;
    std::error_code error;
    if (!fs::exists(directory, error)) return false;
    require(fs::is_directory(directory, error), ExitCode::usage,
            "{}: there is something else than a folder", directory.string());
    if (fs::is_empty(directory, error)) return false;
    require(!error, ExitCode::usage, "{}: {}", directory.string(), error.message());
    require(holds_the_same(options), ExitCode::usage,
            "{}: not empty, and not a complete set made with the same options; remove it or choose "
            "another directory",
            directory.string());
    return true;
}

void write_file(const fs::path& path, const void* bytes, std::size_t size) {
    std::ofstream out(path, std::ios::binary);
    out.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
    out.close();
    require(out.good(), ExitCode::usage, "{}: cannot be written: {}", path.string(),
            std::strerror(errno));
}

void write_pictures(const GenerateOptions& options, const Part& part, const fs::path& root,
                    int threads) {
    for (int label = 0; label < options.classes; ++label) {
        fs::create_directories(root / part.folder / photograph_class_name(label));
    }
    const PhotographSet set{options.classes, options.size, options.seed};
    const std::int64_t pictures = std::int64_t{options.classes} * part.per_class;
    parallel_for(pictures, threads, [&](std::int64_t i) {
        const int label = static_cast<int>(i / part.per_class);
        const auto number = static_cast<std::uint32_t>(i % part.per_class);
        const Image image = make_photograph(set, part.split, label, number);
        const std::vector<std::uint8_t> bytes = encode_jpeg(image.view(), options.quality);
        write_file(
            root / part.folder / photograph_class_name(label) / fmt::format("{:06}.jpg", number),
            bytes.data(), bytes.size());
    });
}

/// A folder beside the wanted one, which takes its place when complete.
class TemporarySet {
public:
    explicit TemporarySet(const fs::path& target) : target_(target) {
        fs::path plain = target;
        if (!plain.has_filename()) plain = plain.parent_path();  // "set/"
        path_ = plain.string() + fmt::format(".partial-{}", getpid());
        fs::create_directories(path_);
    }
    ~TemporarySet() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    TemporarySet(const TemporarySet&) = delete;
    TemporarySet& operator=(const TemporarySet&) = delete;

    const fs::path& path() const { return path_; }
    void complete() { fs::rename(path_, target_); }

private:
    fs::path target_;
    fs::path path_;
};

}  // namespace

bool generate_photographs(const GenerateOptions& options, int threads) {
    check(options);
    if (already_there(options)) return false;
    try {
        TemporarySet set(options.directory);
        for (const Part& part : parts_of(options)) {
            write_pictures(options, part, set.path(), threads);
        }
        const std::string description = describe(options);
        write_file(set.path() / kDescriptionName, description.data(), description.size());
        set.complete();
    } catch (const fs::filesystem_error& error) {
        throw Error(ExitCode::usage,
                    fmt::format("{}: cannot be written: {}", options.directory.string(),
                                error.code().message()));
    }
    return true;
}

}  // namespace hpcai::data
