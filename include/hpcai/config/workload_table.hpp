// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Tables of workloads and models with their names and legal combinations.
namespace hpcai::config {

/// What a model predicts for a sample: its class, its boxes, or the classes of 8 x 8-pixel cells.
enum class Task { classification, detection, segmentation };
enum class WorkloadKind {
    image_classification,
    extreme_weather,
    object_detection,
    climate_segmentation,
    architecture_search
};
/// The problem whose rules and ranking apply: the paper's, or a small one with generated data.
enum class ProblemClass { official, mini };
enum class Model { resnet50_v1, resnet50_v1_5, faster_rcnn_r50_fpn, segmentation_net };
enum class Aggregation { soft_vote, majority, wbf, nms };  // wbf: weighted boxes fusion
enum class DataKind { synthetic, image_folder, voc, coco, climate_synthetic, climate_hdf5 };

struct ModelRow {
    Model value;
    std::string_view name;
};

inline constexpr std::array kModels{
    ModelRow{Model::resnet50_v1, "resnet50_v1"},
    ModelRow{Model::resnet50_v1_5, "resnet50_v1.5"},
    ModelRow{Model::faster_rcnn_r50_fpn, "faster_rcnn_r50_fpn"},
    ModelRow{Model::segmentation_net, "segmentation_net"},
};

/// The legal choices for a kind of workload.
struct WorkloadRow {
    WorkloadKind value;
    std::string_view name;
    Task task;
    std::span<const Model> models;
    std::span<const Aggregation> aggregations;
    std::span<const DataKind> data;
    std::string_view meaning;  // for `config explain`
};

template <auto first, auto... others>
inline constexpr std::array kListOf{first, others...};
inline constexpr auto kVotes = kListOf<Aggregation::soft_vote, Aggregation::majority>;
inline constexpr auto kFusions = kListOf<Aggregation::wbf, Aggregation::nms>;
inline constexpr auto kWeather = kListOf<DataKind::climate_synthetic, DataKind::climate_hdf5>;

inline constexpr std::array kWorkloads{
    WorkloadRow{WorkloadKind::image_classification, "image_classification", Task::classification,
                kListOf<Model::resnet50_v1, Model::resnet50_v1_5>, kVotes,
                kListOf<DataKind::synthetic, DataKind::image_folder>, "classifies images"},
    WorkloadRow{WorkloadKind::extreme_weather, "extreme_weather", Task::detection,
                kListOf<Model::faster_rcnn_r50_fpn>, kFusions, kWeather, "finds storms"},
    WorkloadRow{WorkloadKind::object_detection, "object_detection", Task::detection,
                kListOf<Model::faster_rcnn_r50_fpn>, kFusions,
                kListOf<DataKind::voc, DataKind::coco>, "finds objects in images"},
    WorkloadRow{WorkloadKind::climate_segmentation, "climate_segmentation", Task::segmentation,
                kListOf<Model::segmentation_net>, kVotes, kWeather,
                "classifies each square of 8 x 8 pixels of weather fields"},
    WorkloadRow{WorkloadKind::architecture_search, "architecture_search", Task::classification,
                kListOf<Model::resnet50_v1, Model::resnet50_v1_5>, kVotes,
                kListOf<DataKind::image_folder>,
                "searches for the network that classifies images best"},
};

constexpr const WorkloadRow& row_of(WorkloadKind kind) {
    return *std::ranges::find(kWorkloads, kind, &WorkloadRow::value);
}

/// Returns the values and names in the rows of a table, in order.
template <typename Row, std::size_t count>
auto names_of(const std::array<Row, count>& rows) {
    std::vector<std::pair<decltype(Row::value), std::string>> names;
    for (const Row& row : rows) names.emplace_back(row.value, row.name);
    return names;
}

}  // namespace hpcai::config
