// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <system_error>

#include <hpcai/base/error.hpp>
#include <hpcai/data/sample_index.hpp>

namespace hpcai::data {

namespace {

namespace fs = std::filesystem;

bool named_like_a_picture(const fs::path& path) {
    std::string extension = path.extension().string();
    for (char& letter : extension) {
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    }
    constexpr std::array<std::string_view, 3> kExtensions{".jpg", ".jpeg", ".jpe"};
    return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

/// Names in a folder, sorted by their bytes.
std::vector<std::string> sorted_names(const fs::path& folder) {
    std::error_code error;
    std::vector<std::string> names;
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
        names.push_back(entry->path().filename().string());
    }
    require(!error, ExitCode::data, "{}: cannot list this folder: {}", folder.string(),
            error.message());
    std::sort(names.begin(), names.end());
    return names;
}

void scan_class(const std::string& name, SampleIndex& index) {
    const auto label = static_cast<std::int32_t>(index.classes.size());
    const std::size_t before = index.samples.size();
    for (const std::string& file : sorted_names(index.root / name)) {
        if (!named_like_a_picture(file)) continue;
        const std::string path = name + "/" + file;
        std::error_code error;
        if (fs::is_regular_file(index.root / path, error)) {
            index.samples.push_back({path, label});
        } else {
            index.ignored.push_back(path);
        }
    }
    require(index.samples.size() > before, ExitCode::data,
            "{}: class '{}' is empty, expected at least one regular file *.jpg or *.jpeg",
            index.root.string(), name);
    index.classes.push_back(name);
}

}  // namespace

SampleIndex scan_image_folder(const fs::path& root) {
    require(!root.empty(), ExitCode::data,
            "no folder of pictures is given (data.path, data.validation_path)");
    std::error_code error;
    require(fs::exists(root, error), ExitCode::data, "{}: no such folder of pictures",
            root.string());
    require(fs::is_directory(root, error), ExitCode::data,
            "{}: not a folder; expected <folder>/<class>/<picture>.jpg", root.string());
    SampleIndex index;
    index.root = root;
    for (const std::string& name : sorted_names(root)) {
        if (!name.starts_with('.') && fs::is_directory(root / name, error)) scan_class(name, index);
    }
    require(!index.classes.empty(), ExitCode::data,
            "{}: no class folder in it; expected <folder>/<class>/<picture>.jpg", root.string());
    return index;
}

SampleIndex load_samples(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) ? read_index(path) : scan_image_folder(path);
}

void require_classes(const SampleIndex& index, int classes) {
    require(index.classes.size() == static_cast<std::size_t>(classes), ExitCode::data,
            "{}: {} class folders, but workload.classes is {}", index.root.string(),
            index.classes.size(), classes);
}

void require_same_classes(const SampleIndex& training, const SampleIndex& validation) {
    const auto [mine, theirs] = std::mismatch(training.classes.begin(), training.classes.end(),
                                              validation.classes.begin(), validation.classes.end());
    const bool training_ends = mine == training.classes.end();
    const bool validation_ends = theirs == validation.classes.end();
    if (training_ends && validation_ends) return;
    const bool only_training = validation_ends || (!training_ends && *mine < *theirs);
    throw Error(ExitCode::data,
                fmt::format("class '{}' is in {} but not in {}", only_training ? *mine : *theirs,
                            (only_training ? training : validation).root.string(),
                            (only_training ? validation : training).root.string()));
}

}  // namespace hpcai::data
