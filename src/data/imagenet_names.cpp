// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/core.h>

#include <hpcai/base/text.hpp>
#include <hpcai/data/sample_index.hpp>

namespace hpcai::data {
namespace {

bool are_digits(std::string_view text) {
    return !text.empty() &&
           std::ranges::all_of(text, [](char letter) { return letter >= '0' && letter <= '9'; });
}

bool is_wordnet_number(std::string_view name) {
    return name.size() == 9 && name.front() == 'n' && are_digits(name.substr(1));
}

/// Returns the file name without folder and extension: "b" for "a/b.JPEG".
std::string_view stem(std::string_view path) {
    path.remove_prefix(path.rfind('/') + 1);  // removes nothing if there is no slash
    return path.substr(0, path.rfind('.'));
}

bool is_training_name(const std::string& class_name, std::string_view path) {
    const std::string_view name = stem(path);
    return name.starts_with(class_name + "_") && are_digits(name.substr(class_name.size() + 1));
}

std::optional<std::int32_t> test_number(std::string_view path) {
    constexpr std::string_view kPrefix = "ILSVRC2012_val_";
    constexpr std::size_t kDigits = 8;
    constexpr std::int32_t kSamples = 50000;
    const std::string_view name = stem(path);
    if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kDigits) return std::nullopt;
    const auto number = parse_number<std::int32_t>(name.substr(kPrefix.size()));
    return number && *number >= 1 && *number <= kSamples ? number : std::nullopt;
}

/// Counts names that ImageNet-1k does not have, and keeps the first.
class MismatchedNames {
public:
    void add(const std::string& name) {
        if (count_++ == 0) first_ = name;
    }
    void report(std::string_view what, std::string_view expected,
                std::vector<std::string>& reasons) const {
        if (count_ == 0) return;
        reasons.push_back(fmt::format("{} not named as in ImageNet-1k ({}): {}, the first '{}'",
                                      what, expected, count_, printable(first_)));
    }

private:
    std::int64_t count_ = 0;
    std::string first_;
};

}  // namespace

std::vector<std::string> disqualifications_of_names(const SampleIndex& training,
                                                    const SampleIndex& validation) {
    MismatchedNames classes, training_files, test_files;
    for (const std::string& name : training.classes) {
        if (!is_wordnet_number(name)) classes.add(name);
    }
    for (const Sample& sample : training.samples) {
        const std::string& name = training.classes[sample.label];
        if (!is_training_name(name, sample.path)) training_files.add(sample.path);
    }
    std::set<std::int32_t> known;
    for (const Sample& sample : validation.samples) {
        const auto number = test_number(sample.path);
        if (!number || !known.insert(*number).second) test_files.add(sample.path);
    }
    std::vector<std::string> disqualifications;
    classes.report("classes", "n01440764", disqualifications);
    training_files.report("training files", "n01440764_10026.JPEG", disqualifications);
    test_files.report("test files", "ILSVRC2012_val_00000001.JPEG, each once", disqualifications);
    return disqualifications;
}

}  // namespace hpcai::data
