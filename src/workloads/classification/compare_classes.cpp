// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <hpcai/evaluation/top_k.hpp>
#include <hpcai/workloads/probability_task.hpp>

#include "judge_classes.hpp"

namespace hpcai::workloads {

using evaluation::Judgement;

QualityComparison compare_classes(const ComparedResults& results) {
    const auto [labels, said_1, said_2] = read_probabilities(results);
    const auto classes = static_cast<std::size_t>(results.config.workload.classes);
    require(labels.dtype() == tensor::DType::s32, ExitCode::data, "{}: has {}; must have {}",
            kProbabilityFiles.labels, tensor::name_of(labels.dtype()),
            tensor::name_of(tensor::DType::s32));
    const auto truth = labels.as<std::int32_t>();
    for (const auto* said : {&said_1, &said_2}) {
        require(said->dtype() == tensor::DType::f32, ExitCode::data, "{}: has {}; must have {}",
                kProbabilityFiles.ensemble, tensor::name_of(said->dtype()),
                tensor::name_of(tensor::DType::f32));
        require(said->as<float>().size() == truth.size() * classes, ExitCode::data,
                "{} probabilities for {} labels of {} classes", said->as<float>().size(),
                truth.size(), classes);
    }
    std::int64_t only_first = 0, only_second = 0;
    for (std::size_t sample = 0; sample < truth.size(); ++sample) {
        if (truth[sample] == evaluation::kPaddingLabel) continue;
        const auto is_right = [&](const storage::NpyArray& said) {
            return evaluation::predicted_class(
                       said.as<float>().subspan(sample * classes, classes)) == truth[sample];
        };
        const bool right_1 = is_right(said_1), right_2 = is_right(said_2);
        only_first += right_1 && !right_2;
        only_second += right_2 && !right_1;
    }
    const double p = evaluation::mcnemar_p(only_first, only_second);
    const std::string why =
        fmt::format("McNemar: {} samples only the first has right, {} only the second, p = {:.3g}",
                    only_first, only_second, p);
    if (only_first + only_second == 0) return {Judgement::same, why};
    if (p >= 0.05) return {Judgement::unclear, why};
    return {only_second > only_first ? Judgement::better : Judgement::worse, why};
}

}  // namespace hpcai::workloads
