// SPDX-License-Identifier: Apache-2.0
#include "problems.hpp"

#include <algorithm>
#include <array>

namespace hpcai::verification {
namespace {

constexpr FixedSetting kOfficialPictures[] = {
    {1, "workload.classes", "1000"},         {2, "workload.image_size", "224"},
    {2, "workload.backbone_width", "64"},    {3, "workload.epochs", "90"},
    {4, "workload.target_quality", "0.763"}, {4, "workload.penalty_exponent", "5"}};

constexpr FixedSetting kOfficialWeather[] = {
    {1, "workload.classes", "4"},
    {2, "workload.image_size", "768"},
    {2, "workload.image_width", "1152"},
    {2, "workload.channels", "16"},
    {2, "workload.backbone_width", "64"},
    {3, "workload.epochs", "50"},
    {4, "workload.target_quality", "0.35"},
    {4, "workload.penalty_exponent", "10"},
    {2, "detector.trained_stages", "5"},
    {2, "detector.pyramid_channels", "256"},
    {2, "detector.head_features", "1024"},
    {2, "detector.anchor_sizes", "[32, 64, 128, 256, 512]"},
    {2, "detector.anchor_ratios", "[0.5, 1, 2]"},
    {2, "detector.anchor_samples", "256"},
    {2, "detector.region_samples", "512"},
    {2, "detector.training_proposals", "2000"},
    {2, "detector.inference_proposals", "1000"},
};

constexpr FixedSetting kMiniPictures[] = {
    {1, "workload.classes", "24"},         {2, "workload.image_size", "48"},
    {2, "workload.backbone_width", "64"},  {3, "workload.epochs", "20"},
    {4, "workload.target_quality", "0.8"}, {4, "workload.penalty_exponent", "5"}};

constexpr FixedSetting kMiniWeather[] = {
    {1, "workload.classes", "4"},
    {1, "data.climate_precision", "bf16"},
    {2, "workload.image_size", "96"},
    {2, "workload.image_width", "128"},
    {2, "workload.channels", "16"},
    {2, "workload.backbone_width", "64"},
    {3, "workload.epochs", "8"},
    {4, "workload.target_quality", "0.62"},
    {4, "workload.penalty_exponent", "10"},
    {2, "detector.trained_stages", "5"},
    {2, "detector.pyramid_channels", "96"},
    {2, "detector.head_features", "256"},
    {2, "detector.anchor_sizes", "[20, 32, 56, 96, 160]"},
    {2, "detector.anchor_ratios", "[0.5, 1, 2]"},
    {2, "detector.anchor_samples", "128"},
    {2, "detector.region_samples", "64"},
    {2, "detector.training_proposals", "256"},
    {2, "detector.inference_proposals", "200"},
};

/// Specification V2.0 defines the official problems. It does not state which years of weather are
/// for training.
constexpr std::array kProblems{
    Problem{.kind = config::WorkloadKind::image_classification,
            .problem_class = config::ProblemClass::official,
            .data_kind = config::DataKind::image_folder,
            .data_description = "image_folder (the photographs of ImageNet-1k)",
            .training_samples = 1281167,
            .validation_samples = 50000,
            .settings = kOfficialPictures},
    Problem{.kind = config::WorkloadKind::extreme_weather,
            .problem_class = config::ProblemClass::official,
            .data_kind = config::DataKind::climate_hdf5,
            .data_description = "climate_hdf5 (years of the ExtremeWeather data)",
            .training_samples = 1460,
            .validation_samples = 1460,
            .may_have_more_samples = true,
            .settings = kOfficialWeather},
    Problem{.kind = config::WorkloadKind::image_classification,
            .problem_class = config::ProblemClass::mini,
            .data_kind = config::DataKind::image_folder,
            .data_description = "image_folder (the photographs of data generate mini)",
            .training_samples = 1536,
            .validation_samples = 1536,
            .samples_sha256 = "79f3ca620413ebfc072d17d864529e2c2c519b3d9d8f1e004cf4620db2c6700d",
            .settings = kMiniPictures},
    Problem{.kind = config::WorkloadKind::extreme_weather,
            .problem_class = config::ProblemClass::mini,
            .data_kind = config::DataKind::climate_hdf5,
            .data_description = "climate_hdf5 (the weather of data generate mini)",
            .training_samples = 512,
            .validation_samples = 512,
            .samples_sha256 = "020e05965ef9cb1519660a7bc20eb4a9765a367863b1d175d0a1b0acbb1df8ad",
            .settings = kMiniWeather},
};

}  // namespace

const Problem* find_problem(config::WorkloadKind kind, config::ProblemClass problem_class) {
    const auto* const found = std::ranges::find_if(kProblems, [&](const Problem& problem) {
        return problem.kind == kind && problem.problem_class == problem_class;
    });
    return found == kProblems.end() ? nullptr : found;
}

}  // namespace hpcai::verification
