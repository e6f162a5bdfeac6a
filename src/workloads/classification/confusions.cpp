// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include <hpcai/evaluation/top_k.hpp>
#include <hpcai/workloads/probabilities.hpp>

namespace hpcai::workloads {
namespace {

constexpr std::size_t kMaxConfusions = 10;
constexpr std::size_t kMaxNamesBytes = std::size_t{1} << 30;

/// Names classes by number and folder, such as "3 cats"; returns none if classes share folders.
std::map<std::int32_t, std::string> class_names(const fs::path& samples,
                                                std::span<const std::int32_t> labels) {
    std::istringstream lines(storage::read_file_text(samples, kMaxNamesBytes));
    std::map<std::int32_t, std::string> names;
    std::set<std::string> folders;
    std::string line;
    for (const std::int32_t label : labels) {
        std::getline(lines, line);
        const std::size_t slash = std::min(line.rfind('/'), line.size());
        const std::string folder = line.substr(0, slash);
        if (label == evaluation::kPaddingLabel) continue;
        if (names.emplace(label, fmt::format("{} {}", label, folder)).second)
            folders.insert(folder);
    }
    if (folders.size() < names.size()) names.clear();
    return names;
}

std::vector<ConfusionRecord> count_confusions(std::int64_t classes, const fs::path& evaluation) {
    const storage::NpyArray stored = storage::read_npy(evaluation / kProbabilityFiles.labels);
    const storage::NpyArray scores = storage::read_npy(evaluation / kProbabilityFiles.ensemble);
    const auto labels = stored.as<std::int32_t>();
    require_array(scores, tensor::DType::f32, {std::ssize(labels), classes});
    const auto width = static_cast<std::size_t>(classes);
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> counts;
    for (std::size_t sample = 0; sample < labels.size(); ++sample) {
        const auto row = scores.as<float>().subspan(sample * width, width);
        const std::int32_t label = labels[sample];
        const std::int32_t predicted = evaluation::predicted_class(row).value_or(label);
        if (label != evaluation::kPaddingLabel && predicted != label) ++counts[{label, predicted}];
    }
    auto names = class_names(evaluation / "samples.txt", labels);
    std::vector<ConfusionRecord> confusions;
    for (const auto& [pair, samples] : counts) {
        for (const std::int32_t one : {pair.first, pair.second})
            names.emplace(one, std::to_string(one));
        confusions.push_back({names[pair.first], names[pair.second], samples});
    }
    std::ranges::stable_sort(confusions, std::ranges::greater{}, &ConfusionRecord::samples);
    confusions.resize(std::min(confusions.size(), kMaxConfusions));
    return confusions;
}

}  // namespace

std::vector<ConfusionRecord> find_confusions(const config::WorkloadConfig& workload,
                                             const fs::path& evaluation) {
    if (config::task_of(workload) != config::Task::classification) return {};
    try {
        return count_confusions(workload.classes, evaluation);
    } catch (const Error&) {  // `verify` reports the damaged file
        return {};
    }
}

}  // namespace hpcai::workloads
