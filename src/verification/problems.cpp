// SPDX-License-Identifier: Apache-2.0
#include "problems.hpp"

#include <algorithm>
#include <array>

namespace hpcai::verification {
namespace {

constexpr std::array kOfficialPictures{
    FixedSetting{1, "workload.classes", "1000"},
    FixedSetting{2, "workload.image_size", "224"},
    FixedSetting{2, "workload.backbone_width", "64"},
    FixedSetting{3, "workload.epochs", "90"},
    FixedSetting{4, "workload.target_quality", "0.763"},
    FixedSetting{4, "workload.penalty_exponent", "5"},
};

constexpr std::array kOfficialWeather{
    FixedSetting{1, "workload.classes", "4"},
    FixedSetting{2, "workload.image_size", "768"},
    FixedSetting{2, "workload.image_width", "1152"},
    FixedSetting{2, "workload.channels", "16"},
    FixedSetting{2, "workload.backbone_width", "64"},
    FixedSetting{3, "workload.epochs", "50"},
    FixedSetting{4, "workload.target_quality", "0.35"},
    FixedSetting{4, "workload.penalty_exponent", "10"},
    FixedSetting{2, "detector.trained_stages", "5"},
    FixedSetting{2, "detector.pyramid_channels", "256"},
    FixedSetting{2, "detector.head_features", "1024"},
    FixedSetting{2, "detector.anchor_sizes", "[32, 64, 128, 256, 512]"},
    FixedSetting{2, "detector.anchor_ratios", "[0.5, 1, 2]"},
    FixedSetting{2, "detector.anchor_samples", "256"},
    FixedSetting{2, "detector.region_samples", "512"},
    FixedSetting{2, "detector.training_proposals", "2000"},
    FixedSetting{2, "detector.inference_proposals", "1000"},
};

constexpr std::array kMiniPictures{
    FixedSetting{1, "workload.classes", "24"},
    FixedSetting{2, "workload.image_size", "48"},
    FixedSetting{2, "workload.backbone_width", "64"},
    FixedSetting{3, "workload.epochs", "10"},
    FixedSetting{4, "workload.target_quality", "0.5"},
    FixedSetting{4, "workload.penalty_exponent", "5"},
};

constexpr std::array kMiniWeather{
    FixedSetting{1, "workload.classes", "4"},
    FixedSetting{1, "data.climate_precision", "bf16"},
    FixedSetting{2, "workload.image_size", "96"},
    FixedSetting{2, "workload.image_width", "128"},
    FixedSetting{2, "workload.channels", "16"},
    FixedSetting{2, "workload.backbone_width", "64"},
    FixedSetting{3, "workload.epochs", "6"},
    FixedSetting{4, "workload.target_quality", "0.35"},
    FixedSetting{4, "workload.penalty_exponent", "10"},
    FixedSetting{2, "detector.trained_stages", "5"},
    FixedSetting{2, "detector.pyramid_channels", "96"},
    FixedSetting{2, "detector.head_features", "256"},
    FixedSetting{2, "detector.anchor_sizes", "[20, 32, 56, 96, 160]"},
    FixedSetting{2, "detector.anchor_ratios", "[0.5, 1, 2]"},
    FixedSetting{2, "detector.anchor_samples", "128"},
    FixedSetting{2, "detector.region_samples", "64"},
    FixedSetting{2, "detector.training_proposals", "256"},
    FixedSetting{2, "detector.inference_proposals", "200"},
};

/// The official problems are those of specification V2.0. It does not publish which years of
/// weather are for training.
constexpr std::array kProblems{
    Problem{config::WorkloadKind::image_classification, config::ProblemClass::official,
            config::DataKind::image_folder, "image_folder (the photographs of ImageNet-1k)",
            1281167, 50000, false, "", kOfficialPictures},
    Problem{config::WorkloadKind::extreme_weather, config::ProblemClass::official,
            config::DataKind::climate_hdf5, "climate_hdf5 (years of the ExtremeWeather data)", 1460,
            1460, true, "", kOfficialWeather},
    Problem{config::WorkloadKind::image_classification, config::ProblemClass::mini,
            config::DataKind::image_folder, "image_folder (the photographs of data generate mini)",
            1536, 1536, false, "?", kMiniPictures},
    Problem{config::WorkloadKind::extreme_weather, config::ProblemClass::mini,
            config::DataKind::climate_hdf5, "climate_hdf5 (the weather of data generate mini)", 512,
            256, false, "?", kMiniWeather},
};

}  // namespace

const Problem* find_problem(config::WorkloadKind kind, config::ProblemClass problem_class) {
    const auto* const found = std::ranges::find_if(kProblems, [&](const Problem& problem) {
        return problem.kind == kind && problem.problem_class == problem_class;
    });
    return found == kProblems.end() ? nullptr : found;
}

}  // namespace hpcai::verification
