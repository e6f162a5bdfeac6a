// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <gtest/gtest.h>

#include "morphs/scripts.hpp"

namespace hpcai::morphs {
namespace {

using graph::Graph;

std::vector<std::string> strings(const std::vector<Morph>& morphs) {
    std::vector<std::string> all;
    for (const Morph& morph : morphs) all.push_back(to_string(morph));
    return all;
}

const graph::Node& node_of(const Graph& graph, const std::string& name) {
    return graph.nodes()[graph.value(graph.find(name)).producer];
}

/// Expects an Error(data) with this message.
void expect_refused(const Graph& graph, const Morph& morph, const std::string& message) {
    try {
        apply(graph, morph, 3, 0);
        ADD_FAILURE() << "accepted " << to_string(morph);
    } catch (const Error& error) {
        EXPECT_EQ(error.what(), message);
        EXPECT_EQ(error.code(), ExitCode::data);
    }
}

TEST(LegalMorphs, AreThoseOfBlocks) {
    const Graph root = make_resnet50(small_root());
    EXPECT_EQ(strings(morphs_of(root, MorphKind::wider)),
              (std::vector<std::string>{"wider layer1.0.conv1  16", "wider layer1.0.conv2  16",
                                        "wider layer2.0.conv1  32", "wider layer2.0.conv2  32",
                                        "wider layer3.0.conv1  64", "wider layer3.0.conv2  64",
                                        "wider layer4.0.conv1  128", "wider layer4.0.conv2  128"}));
    // The stem has 7 x 7 already; the last images have 2 x 2 pixels, 4 x 4 before the stride.
    const std::vector<std::string> kernels = strings(morphs_of(root, MorphKind::kernel));
    EXPECT_EQ(std::ranges::count(kernels, "kernel conv1  9"), 0);
    EXPECT_EQ(std::ranges::count(kernels, "kernel layer4.0.conv2  5"), 1);
    EXPECT_EQ(std::ranges::count(kernels, "kernel layer4.0.conv3  3"), 1);
    EXPECT_EQ(kernels.size(), 16u);
    const std::vector<std::string> deeper = strings(morphs_of(root, MorphKind::deeper));
    EXPECT_EQ(deeper.size(), 13u);
    EXPECT_EQ(std::ranges::count(deeper, "deeper layer2.0.relu1  16"), 1);
    EXPECT_EQ(std::ranges::count(deeper, "deeper layer2.0.relu3  16"), 1) << "a quarter of 64";
    const std::vector<std::string> skips = strings(morphs_of(root, MorphKind::skip));
    EXPECT_EQ(std::ranges::count(skips, "skip relu layer1.0.bn1 2"), 1);
}

TEST(LegalMorphs, IncludePlainDeepeningOnlyOnRequest) {
    const Graph root = make_resnet50(small_root());
    EXPECT_EQ(std::ranges::count(legal_morphs(root), MorphKind::deeper_plain, &Morph::kind), 0);
    const std::vector<Morph> plain = morphs_of(root, MorphKind::deeper_plain);
    EXPECT_EQ(plain.size(), 13u);
    const Morph one{MorphKind::deeper_plain, "layer2.0.relu3", "", 64};
    EXPECT_EQ(std::ranges::count(plain, one), 1);
    const Graph child = apply(root, one, 3, 0).graph;
    EXPECT_EQ(child.parameter_count(), root.parameter_count() + 9 * 64 * 64 + 2 * 64);
    EXPECT_EQ(child.value(node_of(child, "layer3.0.conv1").inputs[0]).name, "edit3.relu");
    expect_refused(child, one,
                   "edit 3: deeper_plain of layer2.0.relu3: the graph already has an edit of this "
                   "number");
}

TEST(LegalMorphs, OfResNet50FitTheLimit) {
    const Graph root = models::make_resnet50({});
    EXPECT_EQ(morphs_of(root, MorphKind::wider).size(), 32u);
    EXPECT_EQ(morphs_of(root, MorphKind::kernel).size(), 52u);
    EXPECT_EQ(morphs_of(root, MorphKind::skip).size(), kMaxPlaces);
    EXPECT_EQ(morphs_of(root, MorphKind::deeper).size(), 49u);
}

TEST(LegalMorphs, DoNotDependOnTheBatch) {
    const Graph one = make_resnet50(small_root(1)), many = make_resnet50(small_root(7));
    EXPECT_EQ(legal_morphs(one), legal_morphs(many));
    const std::vector<Morph> script = random_script(one, 5, 1);
    EXPECT_EQ(legal_morphs(apply_all(one, script)), legal_morphs(apply_all(many, script)));
}

TEST(LegalMorphs, AreAllApplied) {
    Graph graph = make_resnet50(small_root());
    graph = apply_all(graph, random_script(graph, 4, 2));
    for (const Morph& morph : legal_morphs(graph)) {
        EXPECT_NO_THROW(apply(graph, morph, 4, 0)) << to_string(morph);
    }
}

TEST(LegalMorphs, ExcludeChildrenOfTooManyParameters) {
    models::ResNet50 options = small_root();
    options.backbone.width = 730;
    const Graph root = make_resnet50(options);
    ASSERT_LT(root.parameter_count(), kMaxParameters);
    const std::vector<std::string> wider = strings(morphs_of(root, MorphKind::wider));
    EXPECT_EQ(std::ranges::count(wider, "wider layer1.0.conv1  1460"), 1);
    EXPECT_EQ(std::ranges::count(wider, "wider layer4.0.conv2  11680"), 0);
    expect_refused(root, {MorphKind::wider, "layer4.0.conv2", "", 11680},
                   "edit 3: wider of layer4.0.conv2: the graph does not allow it");
}

TEST(LegalMorphs, ExcludeATrunkThatAnAdditionReads) {
    const Graph root = make_resnet50(small_root());
    const Graph child = apply(root, {MorphKind::deeper, "layer2.0.relu1", "", 16}, 0, 0).graph;
    expect_refused(child, {MorphKind::wider, "layer2.0.conv1", "", 32},
                   "edit 3: wider of layer2.0.conv1: the graph does not allow it");
    EXPECT_NO_THROW(apply(child, {MorphKind::wider, "edit0.conv1", "", 32}, 1, 0));
}

TEST(LegalMorphs, ExcludeASecondSkipOfTheSameNodes) {
    const Graph root = make_resnet50(small_root());
    const Morph skip{MorphKind::skip, "layer1.0.relu3", "layer3.0.bn2", 4};
    const Graph child = apply(root, skip, 0, 0).graph;
    expect_refused(child, skip, "edit 3: skip of layer1.0.relu3: the graph does not allow it");
    const Morph other{MorphKind::skip, "layer2.0.relu3", "layer3.0.bn2", 2};
    const Graph both = apply(child, other, 1, 0).graph;
    expect_refused(both, skip, "edit 3: skip of layer1.0.relu3: the graph does not allow it");
    expect_refused(both, other, "edit 3: skip of layer2.0.relu3: the graph does not allow it");
}

TEST(Apply, NamesNodesAfterTheEdit) {
    const Graph root = make_resnet50(small_root());
    const Graph child = apply(root, {MorphKind::deeper, "relu", "", 8}, 12, 0).graph;
    EXPECT_EQ(child.nodes().size(), root.nodes().size() + 7);
    EXPECT_EQ(child.value(node_of(child, "maxpool").inputs[0]).name, "edit12.relu2");
    EXPECT_EQ(child.value(node_of(child, "edit12.conv1").inputs[0]).name, "relu");
    EXPECT_EQ(child.parameters()[node_of(child, "edit12.conv1").parameters[0]].name,
              "edit12.conv1.weight");
    EXPECT_EQ(child.statistics()[node_of(child, "edit12.bn2").statistics].name, "edit12.bn2");
}

TEST(Apply, GivesNewNormsTheOptionsOfTheModel) {
    models::ResNet50 options = small_root(8);
    options.backbone.norm.momentum = 0.25;
    options.backbone.norm.statistics_samples = 4;
    const Graph root = make_resnet50(options);
    const Graph child =
        apply(root, {MorphKind::skip, "layer1.0.relu3", "layer2.0.bn2", 2}, 0, 0).graph;
    const auto& norm = std::get<ops::BatchNorm>(node_of(child, "edit0.bn").operation);
    EXPECT_EQ(norm.momentum, 0.25);
    EXPECT_EQ(norm.statistics_samples, 4);
    EXPECT_TRUE(child.parameters()[node_of(child, "edit0.bn").parameters[0]].starts_at_zero);
}

TEST(Apply, OfNoEditsIsTheRoot) {
    const Graph root = make_resnet50(small_root());
    const Graph copy = apply_all(root, {});
    EXPECT_EQ(copy.nodes().size(), root.nodes().size());
    EXPECT_EQ(copy.parameter_count(), root.parameter_count());
}

TEST(Apply, RefusesHostileEdits) {
    const Graph root = make_resnet50(small_root());
    expect_refused(root, {MorphKind::wider, "nowhere", "", 16},
                   "edit 3: wider of nowhere: the graph has no such node");
    expect_refused(root, {MorphKind::wider, "layer1.0.conv1", "", 1'000'000'000'000},
                   "edit 3: wider of layer1.0.conv1: expected the amount 16, got 1000000000000");
    expect_refused(root, {MorphKind::kernel, "layer1.0.conv1", "fc", 3},
                   "edit 3: kernel of layer1.0.conv1: only a skip has an end, got fc");
    expect_refused(root, {MorphKind::skip, "relu", "nowhere", 1},
                   "edit 3: skip of relu: the graph has no node nowhere");
    expect_refused(root, {MorphKind::skip, "layer2.0.relu3", "layer1.0.bn1", 1},
                   "edit 3: skip of layer2.0.relu3: the graph does not allow it");
    expect_refused(root, {MorphKind::deeper, "fc", "", 5},
                   "edit 3: deeper of fc: the graph does not allow it");
    const Graph child = apply(root, {MorphKind::deeper, "relu", "", 8}, 3, 0).graph;
    expect_refused(
        child, {MorphKind::deeper, "layer1.0.relu1", "", 8},
        "edit 3: deeper of layer1.0.relu1: the graph already has an edit of this number");
}

}  // namespace
}  // namespace hpcai::morphs
