// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "morphs/logits.hpp"
#include "morphs/scripts.hpp"
#include "support/largest_error.hpp"

/// Children compute the function of their parents.
namespace hpcai::morphs {
namespace {

using device::Mode;
using graph::Graph;
using graph::NetworkRunner;

/// The largest difference of logits over the largest logit of the parent.
double difference(const Model& parent, const Model& child, Mode mode) {
    const std::vector<float> want = logits(parent, mode), got = logits(child, mode);
    EXPECT_EQ(got.size(), want.size());
    double largest = 0, error = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        largest = std::max(largest, std::abs(double{want[i]}));
        error = std::max(error, std::abs(double{got[i]} - want[i]));
    }
    EXPECT_GT(largest, 0.01);
    return error / largest;
}

class FunctionOf : public testing::TestWithParam<MorphKind> {};

TEST_P(FunctionOf, AChildEqualsThatOfItsParent) {
    // Block sums of another order are the only difference, 1e-6; the values added are zeros.
    tests::LargestError error(fmt::format("logits of a child by {}", name_of(GetParam())), 1e-5);
    const Graph root = make_resnet50(small_root());
    const Model parent{root, random_weights(root, 30)};
    for (const Morph& morph : morphs_of(root, GetParam())) {
        const std::array script{morph};
        const Model child{apply_all(root, script), inherit(root, script, 0, parent.weights, 7)};
        error.add(difference(parent, child, Mode::inference), to_string(morph));
        const double in_training = difference(parent, child, Mode::training);
        if (morph.kind == MorphKind::deeper_plain) {
            EXPECT_GT(in_training, 1e-3) << to_string(morph);
        } else {
            error.add(in_training, to_string(morph));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FunctionOf,
                         testing::Values(MorphKind::wider, MorphKind::kernel, MorphKind::skip,
                                         MorphKind::deeper, MorphKind::deeper_plain),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(Inherit, PreservesTheFunctionOverChainsOfFive) {
    tests::LargestError error("logits of a child after chains of five edits", 1e-5);
    const Graph root = make_resnet50(small_root());
    const Model ancestor{root, random_weights(root, 31)};
    for (std::uint32_t number = 0; number < 20; ++number) {
        const std::vector<Morph> script = random_script(root, 5, number);
        const Model child{apply_all(root, script), inherit(root, script, 0, ancestor.weights, 8)};
        for (const Mode mode : {Mode::training, Mode::inference}) {
            error.add(difference(ancestor, child, mode), fmt::format("script {}", number));
        }
    }
}

TEST(Inherit, PreservesTheFunctionInInferenceOverChainsWithPlainDeepening) {
    tests::LargestError error("logits of a child after five edits, some of them plain", 1e-5);
    const Graph root = make_resnet50(small_root());
    const Model ancestor{root, random_weights(root, 31)};
    for (std::uint32_t number = 0; number < 20; ++number) {
        const std::vector<Morph> script = random_script(root, 5, number, true);
        const Model child{apply_all(root, script), inherit(root, script, 0, ancestor.weights, 8)};
        error.add(difference(ancestor, child, Mode::inference), fmt::format("script {}", number));
    }
}

/// In a chain, the zeros of one edit would hide wrong weights of the next.
TEST(Inherit, PreservesTheFunctionOfParentsThatWereTrained) {
    tests::LargestError error("logits of a child of a trained child", 1e-5);
    const Graph root = make_resnet50(small_root());
    for (std::uint32_t number = 0; number < 20; ++number) {
        const std::vector<Morph> script = random_script(root, 5, 100 + number);
        const Graph four = apply_all(root, std::span(script).first(4));
        const Model parent{four, random_weights(four, 32)};
        const Model child{apply_all(root, script), inherit(root, script, 4, parent.weights, 9)};
        for (const Mode mode : {Mode::training, Mode::inference}) {
            error.add(difference(parent, child, mode), fmt::format("script {}", number));
        }
    }
}

/// The weights of `channel` on the last axis.
std::vector<float> inputs_of(const std::vector<float>& filters, std::size_t channels,
                             std::size_t channel) {
    std::vector<float> values;
    for (std::size_t i = channel; i < filters.size(); i += channels) values.push_back(filters[i]);
    return values;
}

TEST(Inherit, MakesCopiesThatTrainingParts) {
    const Graph root = make_resnet50(small_root());
    const Morph morph{MorphKind::wider, "layer2.0.conv1", "", 32};
    const Child child = apply(root, morph, 0, 11);
    NetworkRunner runner(child.graph);
    write_weights(inherit(root, std::array{morph}, 0, random_weights(root, 33), 11), child.graph,
                  runner.store);
    const auto values_of = [&](const std::string& name) {
        const auto& all = child.graph.parameters();
        const auto found = std::ranges::find(all, name, &graph::Parameter::name);
        return runner.store.read(
            runner.store.parameter(static_cast<graph::ParameterId>(found - all.begin())));
    };
    const auto step = [&] {
        runner.step(graph::random_inputs(child.graph), 0.25f);
        runner.update({device::Sgd{0.9f}}, 0.1);
    };
    const auto index = std::ranges::find(child.graph.parameters(), "layer2.0.conv1.weight",
                                         &graph::Parameter::name) -
                       child.graph.parameters().begin();
    const std::vector<std::int64_t>& sources = child.parameters[index].channels;
    ASSERT_EQ(sources.size(), 32u);
    const auto filter = [&](std::size_t channel) {
        const std::vector<float> all = values_of("layer2.0.conv1.weight");
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(channel * all.size() / 32);
        return std::vector<float>(first, first + static_cast<std::ptrdiff_t>(all.size() / 32));
    };
    for (std::size_t copy = 16; copy < 32; ++copy) EXPECT_EQ(filter(copy), filter(sources[copy]));
    step();
    const std::vector<float> next = values_of("layer2.0.conv2.weight");
    for (std::size_t copy = 16; copy < 32; ++copy) {
        EXPECT_NE(inputs_of(next, 32, copy), inputs_of(next, 32, sources[copy])) << copy;
        EXPECT_NE(inputs_of(next, 32, copy), std::vector<float>(next.size() / 32)) << copy;
        EXPECT_NE(filter(copy), filter(sources[copy])) << copy;
    }
}

TEST(Inherit, DrawsFromItsSeedAndPosition) {
    const Graph root = make_resnet50(small_root());
    const std::vector<Morph> script = random_script(root, 5, 3);
    const Weights parent = random_weights(root, 34);
    const Weights once = inherit(root, script, 0, parent, 1);
    EXPECT_EQ(once.parameters, inherit(root, script, 0, parent, 1).parameters);
    EXPECT_NE(once.parameters, inherit(root, script, 0, parent, 2).parameters);
    const Weights half = inherit(root, std::span(script).first(2), 0, parent, 1);
    EXPECT_EQ(once.parameters, inherit(root, script, 2, half, 1).parameters);
}

TEST(Inherit, DrawsNewFiltersLikeThoseOfANewModel) {
    const Graph root = make_resnet50(small_root());
    const auto deeper = morphs_of(root, MorphKind::deeper);
    const std::array script{deeper.front()};
    const Weights weights = inherit(root, script, 0, random_weights(root, 35), 12);
    const Graph child = apply_all(root, script);
    const auto found =
        std::ranges::find(child.parameters(), "edit0.conv1.weight", &graph::Parameter::name);
    ASSERT_NE(found, child.parameters().end());
    const auto& filters = weights.parameters[found - child.parameters().begin()];
    double squares = 0;
    for (const float value : filters) squares += double{value} * value;
    const double fan_out = 9.0 * static_cast<double>(found->shape[0]);
    // 576 draws: the variance has a relative deviation of 0.06.
    EXPECT_NEAR(squares / static_cast<double>(filters.size()) * fan_out / 2, 1, 0.25);
}

TEST(Inherit, RejectsWeightsOfAnotherGraph) {
    const Graph root = make_resnet50(small_root());
    const std::array script{morphs_of(root, MorphKind::skip).front()};
    EXPECT_THROW(inherit(root, script, 1, random_weights(root, 36), 1), Error);
}

TEST(ChildSeed, DependsOnEachArgument) {
    const std::uint64_t seed = child_seed(1, 2, 3);
    EXPECT_EQ(seed, child_seed(1, 2, 3));
    EXPECT_NE(seed, child_seed(2, 2, 3));
    EXPECT_NE(seed, child_seed(1, 3, 3));
    EXPECT_NE(seed, child_seed(1, 2, 4));
}

}  // namespace
}  // namespace hpcai::morphs
