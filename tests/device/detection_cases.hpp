// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <hpcai/reference/naive_ops.hpp>

namespace hpcai::device {

inline ops::Anchors anchors_of(const nlohmann::json& settings) {
    ops::Anchors anchors{.image_height = settings.at("image_height"),
                         .image_width = settings.at("image_width")};
    for (const auto& level : settings.at("levels")) {
        anchors.levels.push_back(
            {level.at("height"), level.at("width"), level.at("stride"), level.at("cell")});
    }
    return anchors;
}

/// Returns the operation of a case of detection.safetensors; empty for a case of another file.
inline std::optional<ops::Operation> detection_of(const nlohmann::json& at,
                                                  const naive::Problem& problem) {
    const auto shape = [&](std::size_t index) { return problem.inputs.at(index).shape; };
    const auto batch = [&] { return shape(0)[0]; };
    const auto last = [&] { return problem.inputs.back().shape; };
    const std::map<std::string, std::function<ops::Operation()>> makers{
        {"anchor_targets",
         [&] {
             return ops::AnchorTargets{shape(0), anchors_of(at.at("anchors")), at.at("samples")};
         }},
        {"rpn_loss",
         [&] {
             return ops::RpnLoss{batch(), anchors_of(at.at("anchors")), last()};
         }},
        {"proposals",
         [&] {
             return ops::Proposals{batch(), anchors_of(at.at("anchors")), at.at("per_level"),
                                   at.at("limit")};
         }},
        {"roi_targets",
         [&] {
             return ops::RoiTargets{shape(0), shape(1), at.at("samples")};
         }},
        {"roi_align",
         [&] {
             return ops::RoiAlign{{shape(0), shape(1), shape(2), shape(3)},
                                  last(),
                                  at.at("pooled"),
                                  at.at("sampling_ratio")};
         }},
        {"roi_loss",
         [&] {
             return ops::RoiLoss{last(), at.at("classes")};
         }},
        {"detections", [&] {
             ops::Detections op{.proposals = last(), .classes = at.at("classes")};
             op.image_height = at.at("image_height");
             op.image_width = at.at("image_width");
             op.limit = at.at("limit");
             return op;
         }}};
    const auto found = makers.find(at.at("operation"));
    if (found == makers.end()) return std::nullopt;
    return found->second();
}

}  // namespace hpcai::device
