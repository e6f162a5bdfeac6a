// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <hpcai/config/config.hpp>
#include <hpcai/models/make_model.hpp>

namespace hpcai::models {
namespace {

std::int64_t filters_of(const graph::Graph& graph, const std::string& name) {
    for (const graph::Parameter& parameter : graph.parameters()) {
        if (parameter.name == name) return parameter.shape[0];
    }
    ADD_FAILURE() << name;
    return 0;
}

TEST(MakeModel, GivesClassifiersAndDetectorsTheWidthOfTheConfiguration) {
    config::Config classifier;
    EXPECT_EQ(make_model(classifier).parameter_count(), 25'557'032) << "ResNet-50 by default";
    classifier.workload.backbone_width = 8;
    const graph::Graph narrow = make_model(classifier);
    EXPECT_EQ(filters_of(narrow, "conv1.weight"), 8);
    EXPECT_EQ(filters_of(narrow, "layer4.2.conv3.weight"), 8 * 8 * 4);

    config::Config detector = classifier;
    detector.workload.kind = config::WorkloadKind::object_detection;
    detector.workload.model = config::Model::faster_rcnn_r50_fpn;
    const graph::Graph detecting = make_model(detector);
    EXPECT_EQ(filters_of(detecting, "backbone.body.conv1.weight"), 8);
    EXPECT_EQ(filters_of(detecting, "backbone.body.layer4.2.conv3.weight"), 8 * 8 * 4);
}

}  // namespace
}  // namespace hpcai::models
