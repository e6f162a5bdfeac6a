// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <hpcai/base/error.hpp>
#include <hpcai/graph/shard.hpp>

#include "graphs.hpp"
#include "support/network_runner.hpp"
#include "support/thread_shards.hpp"

namespace hpcai::graph {
namespace {

using device::CpuLayout;
using tensor::DType;
using testing::ElementsAre;

std::vector<float> of_part(const std::vector<float>& whole, const Parameter& parameter) {
    if (!parameter.slice) return whole;
    const auto axis = static_cast<std::size_t>(parameter.slice->axis);
    tensor::Shape shape = parameter.shape;
    shape[axis] = parameter.slice->channels;
    return tests::channels_of_shard(whole, shape, axis,
                                    {parameter.slice->first, parameter.shape[axis]});
}

struct Case {
    std::string name;
    Graph graph;
};

/// Every second layer has a number of channels that no number of shards divides.
Graph uneven_resnet() {
    GraphMaker make;
    ValueId x = make.convolution("conv", make.images({3, 12, 10, 3}), 21, 3);
    x = make.max_pool("pool", make.relu("relu", make.norm("bn", x)));
    x = bottleneck(make, "a", x, 7, 1);
    x = bottleneck(make, "b", x, 7, 1);
    x = bottleneck(make, "c", x, 11, 2);
    return make.finish(x, 5);
}

/// Channels in whole blocks, which oneDNN requires for its fast layouts.
Graph wide_resnet() {
    GraphMaker make;
    ValueId x = make.convolution("conv", make.images({2, 8, 8, 3}), 64, 3);
    x = make.relu("relu", make.norm("bn", x));
    x = bottleneck(make, "a", x, 64, 2);
    return make.finish(bottleneck(make, "b", x, 64, 1), 6);
}

std::vector<Case> cases() {
    return {{"small_resnet", small_resnet()},
            {"every_operation", every_operation()},
            {"fused every_operation", fuse(every_operation())},
            {"uneven_resnet", uneven_resnet()},
            {"fused uneven_resnet", fuse(uneven_resnet())},
            {"fused wide_resnet", fuse(wide_resnet())}};
}

constexpr float kLossScale = 8;

/// All shards of a network, one thread each.
class PartNetworks {
public:
    PartNetworks(const Graph& model, int parts, const RunnerOptions& options)
        : exchange_(parts), parts_(parts) {
        for (int part = 0; part < parts; ++part) {
            runners_.push_back(std::make_unique<NetworkRunner>(
                shard(model, parts, part).graph,
                device::make_cpu_device({options.threads, options.layout, options.deterministic}),
                NetworkOptions{.compute = options.compute, .exchange = &exchange_.exchange(part)}));
        }
    }

    void set_parameters(const Tensors& whole) {
        for (const auto& runner : runners_) {
            const auto& parameters = runner->network.graph().parameters();
            for (std::size_t id = 0; id < parameters.size(); ++id) {
                const std::vector<float> all(whole[id].values.begin(), whole[id].values.end());
                runner->store.write(of_part(all, parameters[id]),
                                    runner->store.parameter(static_cast<ParameterId>(id)));
            }
        }
    }

    std::vector<naive::NetworkResult> step(const Inputs& inputs) {
        std::vector<naive::NetworkResult> results(runners_.size());
        exchange_.run([&](int part) {
            results[static_cast<std::size_t>(part)] = runner(part).step(inputs, kLossScale);
        });
        return results;
    }

    NetworkRunner& runner(int part) { return *runners_[static_cast<std::size_t>(part)]; }
    std::int64_t bytes_sent(int part) const { return exchange_.bytes_sent(part); }
    int parts() const { return parts_; }

private:
    tests::ThreadShards exchange_;
    int parts_;
    std::vector<std::unique_ptr<NetworkRunner>> runners_;
};

std::vector<float> floats(const naive::Tensor& tensor) {
    return {tensor.values.begin(), tensor.values.end()};
}
std::vector<double> doubles(const std::vector<float>& values) {
    return {values.begin(), values.end()};
}

double length(const std::vector<double>& values) {
    double squares = 0;
    for (const double value : values) squares += value * value;
    return std::sqrt(squares);
}

double distance(std::vector<double> a, const std::vector<double>& b) {
    EXPECT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
    return length(a);
}

/// A model and its shards after the same step.
class Comparison {
public:
    Comparison(const Graph& model, int parts, const RunnerOptions& options)
        : whole(model, options), networks(model, parts, options) {
        const Tensors parameters = random_parameters(model);
        const Inputs inputs = random_inputs(model);
        whole.set_parameters(parameters);
        want = whole.step(inputs, kLossScale);
        networks.set_parameters(parameters);
        got = networks.step(inputs);
    }

    /// Losses and probabilities of all shards, and gradients and running means, each relative to
    /// the length of the model's.
    void expect_near(double tolerance) {
        for (int part = 0; part < networks.parts(); ++part) {
            SCOPED_TRACE(fmt::format("part {}", part));
            const naive::NetworkResult& mine = got[static_cast<std::size_t>(part)];
            EXPECT_EQ(mine.losses, got.front().losses);
            EXPECT_LT(relative_distance(mine.losses, want.losses), tolerance);
            EXPECT_LT(relative_distance(mine.probabilities, want.probabilities), tolerance);
            const Graph& graph = networks.runner(part).network.graph();
            for (std::size_t id = 0; id < graph.parameters().size(); ++id) {
                EXPECT_LT(distance(mine.gradients[id].values, wanted(graph, id)),
                          tolerance * length(want.gradients[id].values))
                    << graph.parameters()[id].name;
            }
            for (std::size_t id = 0; id < graph.statistics().size(); ++id) {
                expect_near_mean(part, id, tolerance);
            }
        }
    }

    std::vector<double> wanted(const Graph& graph, std::size_t id) const {
        return doubles(of_part(floats(want.gradients[id]), graph.parameters()[id]));
    }

    NetworkRunner whole;
    PartNetworks networks;
    naive::NetworkResult want;
    std::vector<naive::NetworkResult> got;  // by part

private:
    void expect_near_mean(int part, std::size_t id, double tolerance) {
        NetworkRunner& runner = networks.runner(part);
        const NormStatistics& running = runner.network.graph().statistics()[id];
        const auto index = static_cast<std::int32_t>(id);
        const auto mean = runner.store.read(runner.store.running_mean(index));
        const auto all = whole.store.read(whole.store.running_mean(index));
        const tensor::Shape shape{static_cast<std::int64_t>(all.size())};
        const ops::ChannelRange range{running.first_channel, running.channels};
        EXPECT_LT(distance(doubles(mean), doubles(tests::channels_of_shard(all, shape, 0, range))),
                  tolerance * length(doubles(all)))
            << running.name;
    }
};

void compare(const Graph& model, int parts, const RunnerOptions& options, double tolerance) {
    Comparison(model, parts, options).expect_near(tolerance);
}

TEST(Split, ComputesWhatTheModelDoesUpToRounding) {
    for (const Case& one : cases()) {
        for (const int parts : {1, 2, 3, 4, 5}) {
            SCOPED_TRACE(fmt::format("{} in {} parts", one.name, parts));
            compare(one.graph, parts, {}, 1e-4);  // fp32, sums in another order
        }
    }
}

TEST(Split, ComputesInEveryLayoutAndWithSeveralThreads) {
    for (const Case& one : cases()) {
        SCOPED_TRACE(one.name);
        compare(one.graph, 2, {.layout = CpuLayout::channels_last}, 1e-4);
        compare(one.graph, 4, {.layout = CpuLayout::blocked}, 1e-4);
        compare(one.graph, 2, {.threads = 3, .deterministic = true}, 1e-4);
    }
}

TEST(Split, ComputesInBf16) {
    const auto device = device::make_cpu_device({});
    if (std::ranges::count(device->compute_dtypes(), DType::bf16) == 0) GTEST_SKIP() << "no bf16";
    const Graph model = fuse(wide_resnet());
    for (const int parts : {2, 4}) {
        const Comparison exact(model, parts, {});
        Comparison rounded(model, parts, {.compute = DType::bf16});
        double of_parts = 0, of_model = 0;  // distances from fp32
        for (int part = 0; part < parts; ++part) {
            const Graph& graph = rounded.networks.runner(part).network.graph();
            const auto index = static_cast<std::size_t>(part);
            for (std::size_t id = 0; id < graph.parameters().size(); ++id) {
                const std::vector<double> want = exact.wanted(graph, id);
                of_parts += distance(rounded.got[index].gradients[id].values, want);
                of_model += distance(rounded.wanted(graph, id), want);
            }
        }
        EXPECT_GT(of_model, 0);
        EXPECT_LT(of_parts, 1.3 * of_model);  // partial sums are rounded, too
        EXPECT_LT(relative_distance(rounded.got[0].losses, rounded.want.losses), 2e-2);
    }
}

TEST(Split, HasTheSameBitsAgain) {
    const Graph model = fuse(uneven_resnet());
    const Inputs inputs = random_inputs(model);
    PartNetworks networks(model, 3, {});
    networks.set_parameters(random_parameters(model));
    const auto first = networks.step(inputs), second = networks.step(inputs);
    for (std::size_t part = 0; part < first.size(); ++part) {
        EXPECT_EQ(first[part].losses, second[part].losses);
        for (std::size_t id = 0; id < first[part].gradients.size(); ++id) {
            EXPECT_EQ(first[part].gradients[id].values, second[part].gradients[id].values);
        }
    }
}

TEST(Split, CountsTheBytesOfItsExchanges) {
    for (const Case& one : cases()) {
        for (const int parts : {2, 3, 5}) {
            PartNetworks networks(one.graph, parts, {});
            networks.set_parameters(random_parameters(one.graph));
            networks.step(random_inputs(one.graph));
            for (int part = 0; part < parts; ++part) {
                EXPECT_EQ(
                    networks.bytes_sent(part),
                    exchanged_bytes(networks.runner(part).network.graph(), sizeof(float)).sent)
                    << one.name << ", part " << part << " of " << parts;
            }
        }
    }
}

/// "gather" and "scatter" of these values, in order.
std::vector<std::string> exchanges(const Graph& graph) {
    std::vector<std::string> found;
    for (const Node& node : graph.nodes()) {
        const bool gathers = std::holds_alternative<ops::AllGather>(node.operation);
        const bool scatters = std::holds_alternative<ops::ReduceScatter>(node.operation);
        if (gathers || scatters) found.push_back(node.name);
    }
    return found;
}

TEST(Split, SendsTheNarrowValuesOfABottleneckOnly) {
    GraphMaker make;
    ValueId x = make.relu("relu", make.convolution("conv", make.images({2, 8, 8, 3}), 32, 3));
    const auto block = [&](const std::string& name, std::int64_t width, std::int64_t stride) {
        ValueId y = make.relu(name + ".relu1", make.convolution(name + ".conv1", x, width));
        y = make.relu(name + ".relu2", make.convolution(name + ".conv2", y, width, 3, stride));
        y = make.convolution(name + ".conv3", y, 4 * width);
        if (stride > 1) x = make.convolution(name + ".down", x, 4 * width, 1, stride);
        x = make.relu(name + ".relu3", make.add(name + ".add", y, x));
    };
    block("a", 8, 1);
    block("b", 12, 2);
    const Graph model = make.finish(x, 6);
    // b: 32 channels of 8 x 8 against 12 of 8 x 8 and 48 of 4 x 4.
    EXPECT_THAT(exchanges(shard(model, 2, 0).graph),
                ElementsAre("a.conv1", "a.relu1.gathered", "a.relu2.gathered", "b.conv1", "b.conv2",
                            "b.relu2.gathered", "b.down", "avgpool.gathered", "fc.gathered"));
}

TEST(Split, CutsEachParameterInSlicesThatMakeTheWhole) {
    for (const Case& one : cases()) {
        for (const int parts : {2, 4}) {
            std::vector<std::int64_t> elements(one.graph.parameters().size());
            for (int part = 0; part < parts; ++part) {
                const Graph graph = shard(one.graph, parts, part).graph;
                ASSERT_EQ(graph.parameters().size(), elements.size());
                for (std::size_t id = 0; id < elements.size(); ++id) {
                    const Parameter& mine = graph.parameters()[id];
                    ASSERT_TRUE(mine.slice) << mine.name;
                    EXPECT_EQ(mine.name, one.graph.parameters()[id].name);
                    elements[id] += mine.shape.elements();
                }
            }
            for (std::size_t id = 0; id < elements.size(); ++id) {
                EXPECT_EQ(elements[id], one.graph.parameters()[id].shape.elements());
            }
        }
    }
}

TEST(Split, RejectsMoreShardsThanALayerHasChannels) {
    try {
        shard(uneven_resnet(), 6, 0);
        ADD_FAILURE() << "it was split";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        EXPECT_STREQ(error.what(),
                     "parallel.model_degree: expected 1 to 5, the number of channels of fc, got 6");
    }
}

TEST(Split, CutsEveryPartAtTheSameNodesOfTheModel) {
    const Graph model = fuse(uneven_resnet());
    const auto end_of = [](const Stage& stage) { return stage.graph.nodes().back().name; };
    for (const int stages : {1, 2, 3}) {
        const std::vector<Stage> whole = partition_stages(model, stages);
        const std::vector<Stage> made = partition_stages(model, stages, 3);
        ASSERT_EQ(made.size(), static_cast<std::size_t>(3 * stages));
        for (std::size_t stage = 0; stage < whole.size(); ++stage) {
            const std::string name = end_of(whole[stage]);
            for (std::size_t part = 0; part < 3; ++part) {
                EXPECT_EQ(end_of(made[stage * 3 + part]), name);
            }
        }
    }
}

}  // namespace
}  // namespace hpcai::graph
