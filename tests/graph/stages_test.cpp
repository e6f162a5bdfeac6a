// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/graph/stages.hpp>

#include "graphs.hpp"

namespace hpcai::graph {
namespace {

constexpr int kElementBytes = 4;
constexpr double kNoCut = std::numeric_limits<double>::infinity();

/// The most expensive stage, and all cuts together.
struct Price {
    double largest = 0, cuts = 0;
    auto operator<=>(const Price&) const = default;
};

Price price_of(const StageCosts& costs, std::vector<std::size_t> ends) {
    const auto cut = [&](std::size_t position) {
        return position == 0 || position == costs.nodes.size() ? 0 : costs.cuts[position];
    };
    Price price;
    ends.push_back(costs.nodes.size());
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
        double stage = cut(begin) + cut(end);
        int trained = 0;
        for (std::size_t node = begin; node < end; ++node) {
            stage += costs.nodes[node];
            trained += costs.trained[node];
        }
        price.largest = std::max(price.largest, trained > 0 ? stage : kNoCut);
        price.cuts += cut(begin);
        begin = end;
    }
    return price;
}

/// The best solution by exhaustive search.
Price best_price(const StageCosts& costs, int stages, std::vector<std::size_t> ends = {}) {
    if (static_cast<int>(ends.size()) + 1 == stages) return price_of(costs, ends);
    Price best{kNoCut, kNoCut};
    for (std::size_t end = ends.empty() ? 1 : ends.back() + 1; end < costs.nodes.size(); ++end) {
        std::vector<std::size_t> more = ends;
        more.push_back(end);
        best = std::min(best, best_price(costs, stages, more));
    }
    return best;
}

std::vector<ValueId> received_by(const Stage& stage) {
    std::vector<ValueId> received;
    for (std::size_t value = 0; value < stage.graph.values().size(); ++value) {
        const auto id = static_cast<ValueId>(value);
        if (stage.graph.value(id).is_received) received.push_back(id);
    }
    return received;
}

StageCosts random_costs(std::uint32_t seed) {
    CounterStream random(3, RandomPurpose::test, seed);
    StageCosts costs;
    const std::uint32_t nodes = 1 + random.below(9);
    for (std::uint32_t node = 0; node < nodes; ++node) {
        costs.nodes.push_back(random.below(20));
        costs.cuts.push_back(random.below(5) == 0 ? kNoCut : random.below(8));
        costs.trained.push_back(static_cast<int>(random.below(3)));
    }
    return costs;
}

TEST(Balance, IsAsGoodAsTheBestOfAllCuts) {
    int found = 0;
    for (std::uint32_t seed = 0; seed < 400; ++seed) {
        const StageCosts costs = random_costs(seed);
        for (int stages = 1; stages <= 4; ++stages) {
            const Price best = best_price(costs, stages);
            const std::vector<std::size_t> ends = balance(costs, stages);
            if (std::isinf(best.largest)) {
                EXPECT_TRUE(ends.empty()) << seed;
                continue;
            }
            ++found;
            ASSERT_EQ(ends.size() + 1, static_cast<std::size_t>(stages)) << seed;
            EXPECT_EQ(price_of(costs, ends), best) << seed << ", " << stages << " stages";
        }
    }
    EXPECT_GT(found, 500);  // else the costs test nothing
}

TEST(Balance, TakesTheEarliestOfEqualCuts) {
    EXPECT_THAT(balance({{4, 0, 0, 4}, {0, 1, 1, 1}, {1, 0, 0, 1}}, 2), testing::ElementsAre(1));
}

Graph deep_resnet() {
    GraphMaker make;
    ValueId x = make.convolution("conv", make.images({2, 16, 16, 3}), 8, 3);
    for (int block = 0; block < 12; ++block) {
        x = bottleneck(make, fmt::format("block{}", block), x, 8 << (block / 4), block % 4 ? 1 : 2);
    }
    return make.finish(x, 5);
}

std::vector<std::pair<std::string, Graph>> graphs() {
    return {{"small_resnet", small_resnet()},
            {"every_operation", every_operation()},
            {"fused every_operation", fuse(every_operation())},
            {"deep_resnet", deep_resnet()},
            {"fused deep_resnet", fuse(deep_resnet())}};
}

int most_stages(const Graph& graph) {
    int stages = 1;
    while (!balance(stage_costs(graph), stages + 1).empty()) ++stages;
    return stages;
}

TEST(Cut, PutsEachNodeParameterAndStatisticInOneStage) {
    for (const auto& [name, graph] : graphs()) {
        for (const int stages : {1, 2, 3, most_stages(graph)}) {
            SCOPED_TRACE(name + ", stages: " + std::to_string(stages));
            std::vector<std::string> nodes;
            std::set<ParameterId> parameters;
            std::set<std::int32_t> statistics;
            std::size_t parameter_count = 0, statistics_count = 0;
            for (const Stage& stage : partition_stages(graph, stages)) {
                EXPECT_EQ(stage.first_node, nodes.size());
                EXPECT_EQ(stage.nodes, stage.graph.nodes().size());
                for (const Node& node : stage.graph.nodes()) nodes.push_back(node.name);
                for (std::size_t id = 0; id < stage.parameters.size(); ++id) {
                    const auto whole = static_cast<std::size_t>(stage.parameters[id]);
                    EXPECT_EQ(stage.graph.parameters()[id].name, graph.parameters()[whole].name);
                }
                for (std::size_t id = 0; id < stage.statistics.size(); ++id) {
                    const auto whole = static_cast<std::size_t>(stage.statistics[id]);
                    EXPECT_EQ(stage.graph.statistics()[id].name, graph.statistics()[whole].name);
                }
                parameters.insert(stage.parameters.begin(), stage.parameters.end());
                statistics.insert(stage.statistics.begin(), stage.statistics.end());
                parameter_count += stage.parameters.size();
                statistics_count += stage.statistics.size();
            }
            ASSERT_EQ(nodes.size(), graph.nodes().size());
            for (std::size_t node = 0; node < nodes.size(); ++node) {
                EXPECT_EQ(nodes[node], graph.nodes()[node].name);
            }
            EXPECT_EQ(parameters.size(), graph.parameters().size());
            EXPECT_EQ(parameter_count, graph.parameters().size());
            EXPECT_EQ(statistics.size(), graph.statistics().size());
            EXPECT_EQ(statistics_count, graph.statistics().size());
        }
    }
}

TEST(Cut, HandsOverWhatTheNextStageReceives) {
    for (const auto& [name, graph] : graphs()) {
        for (const int stages : {2, 3, most_stages(graph)}) {
            SCOPED_TRACE(name + ", stages: " + std::to_string(stages));
            const std::vector<Stage> made = partition_stages(graph, stages);
            EXPECT_TRUE(received_by(made.front()).empty());
            EXPECT_TRUE(made.back().graph.outputs().empty());
            for (std::size_t stage = 1; stage < made.size(); ++stage) {
                const Stage& before = made[stage - 1];
                const Stage& mine = made[stage];
                std::int64_t bytes = 0;
                const std::vector<ValueId> received = received_by(mine);
                ASSERT_EQ(received.size(), before.graph.outputs().size());
                for (std::size_t i = 0; i < received.size(); ++i) {
                    const ValueId output = before.graph.outputs()[i];
                    const Value& sent = before.graph.value(output);
                    const Value& got = mine.graph.value(received[i]);
                    EXPECT_EQ(got.name, sent.name);
                    EXPECT_EQ(got.shape, sent.shape);
                    EXPECT_TRUE(got.is_received);
                    EXPECT_EQ(mine.graph.needs_gradient(received[i]),
                              before.graph.needs_gradient(output));
                    bytes += sent.shape.elements() * kElementBytes;
                }
                EXPECT_EQ(crossing_bytes(graph, mine.first_node, kElementBytes), bytes);
            }
        }
    }
}

TEST(Cut, RejectsMoreStagesThanTheModelHas) {
    const Graph graph = small_resnet();
    const int most = most_stages(graph);
    try {
        partition_stages(graph, most + 1);
        ADD_FAILURE() << "it was cut";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        EXPECT_EQ(error.what(),
                  fmt::format("parallel.pipeline_degree: expected 1 to {}, the largest number of "
                              "stages of this model, got {}",
                              most, most + 1));
    }
}

TEST(Fuse, LeavesTheOutputsOfAStageWhatTheyAre) {
    GraphMaker make;
    const ValueId x = make.convolution("conv", make.images({2, 8, 8, 3}), 16, 3);
    const ValueId norm = make.norm("norm", x);
    const ValueId relu = make.relu("relu", norm);
    EXPECT_EQ(fuse(make.graph).nodes().size() + 1, make.graph.nodes().size());
    for (const ValueId output : {norm, relu}) {
        Graph stage = make.graph;
        stage.add_output(output);
        const Graph fused = fuse(stage);
        ASSERT_EQ(fused.outputs().size(), 1U);
        const Value& kept = fused.value(fused.outputs().front());
        EXPECT_EQ(kept.producer != kNoNode, true);
        EXPECT_EQ(fused.nodes().size(), stage.nodes().size() - (output == relu ? 1 : 0));
    }
}

/// Networks of a model's stages in one process.
class Chain {
public:
    Chain(const Graph& graph, int stages)
        : device_(device::make_cpu_device({})), stages_(partition_stages(graph, stages)) {
        const NetworkOptions options{};
        for (const Stage& stage : stages_) {
            stores_.push_back(std::make_unique<ParameterStore>(stage.graph, *device_));
            networks_.push_back(
                std::make_unique<Network>(stage.graph, *device_, *stores_.back(), options));
        }
    }

    /// Writes every parameter's numbers, which depend on its name alone.
    void fill() {
        for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
            const auto& parameters = stages_[stage].graph.parameters();
            for (std::size_t id = 0; id < parameters.size(); ++id) {
                const auto part = stores_[stage]->parameter(static_cast<ParameterId>(id));
                std::mt19937 random(
                    static_cast<std::uint32_t>(std::hash<std::string>()(parameters[id].name)));
                std::normal_distribution<float> normal(0.2f, 0.3f);
                std::vector<float> values(part.size());
                for (float& value : values) value = normal(random);
                stores_[stage]->write(values, part);
            }
        }
    }

    void run(std::span<const std::byte> pixels, std::span<const std::byte> labels) {
        Observer nobody;
        for (std::size_t stage = 0; stage < networks_.size(); ++stage) {
            Network& network = *networks_[stage];
            network.prepare(nobody);
            if (network.has_input("images")) network.set_input("images", pixels);
            if (network.has_input("labels")) network.set_input("labels", labels);
            for (const ValueId value : received_by(stages_[stage])) {
                const std::string& name = stages_[stage].graph.value(value).name;
                copy(networks_[stage - 1]->value(name), network.input(name));
            }
            network.forward(nobody);
        }
        for (std::size_t stage = networks_.size(); stage-- > 0;) {
            networks_[stage]->backward(nobody);
            for (const ValueId value : received_by(stages_[stage])) {
                if (!stages_[stage].graph.needs_gradient(value)) continue;
                const std::string& name = stages_[stage].graph.value(value).name;
                copy(networks_[stage]->received_gradient(name),
                     networks_[stage - 1]->output_gradient(name));
            }
        }
    }

    /// All parameters and then the running statistics, in the model's order.
    std::vector<std::vector<float>> results(std::size_t parameters, std::size_t statistics) {
        std::vector<std::vector<float>> all(parameters + 2 * statistics);
        for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
            ParameterStore& store = *stores_[stage];
            for (std::size_t id = 0; id < stages_[stage].parameters.size(); ++id) {
                all[static_cast<std::size_t>(stages_[stage].parameters[id])] =
                    store.read(store.gradient(static_cast<ParameterId>(id)));
            }
            for (std::size_t id = 0; id < stages_[stage].statistics.size(); ++id) {
                const auto index = static_cast<std::size_t>(stages_[stage].statistics[id]);
                const auto mine = static_cast<std::int32_t>(id);
                all[parameters + 2 * index] = store.read(store.running_mean(mine));
                all[parameters + 2 * index + 1] = store.read(store.running_variance(mine));
            }
        }
        return all;
    }

private:
    static void copy(std::span<const std::byte> from, std::span<std::byte> to) {
        ASSERT_EQ(from.size(), to.size());
        std::memcpy(to.data(), from.data(), from.size());  // a CPU's memory is the host's
    }

    std::unique_ptr<device::Device> device_;
    std::vector<Stage> stages_;
    std::vector<std::unique_ptr<ParameterStore>> stores_;
    std::vector<std::unique_ptr<Network>> networks_;
};

std::vector<std::vector<float>> gradients_of(const Graph& graph, int stages) {
    const tensor::Shape shape = graph.value(graph.find("images")).shape;
    std::vector<std::byte> pixels(static_cast<std::size_t>(shape.elements()));
    std::mt19937 random(7);
    for (std::byte& pixel : pixels) pixel = static_cast<std::byte>(random() % 256);
    std::vector<std::int32_t> labels;
    for (std::int64_t row = 0; row < shape[0]; ++row) {
        labels.push_back(static_cast<std::int32_t>(row % 5));
    }
    Chain chain(graph, stages);
    chain.fill();
    chain.run(pixels, std::as_bytes(std::span(labels)));
    return chain.results(graph.parameters().size(), graph.statistics().size());
}

TEST(StageNetworks, TogetherComputeWhatTheWholeModelDoes) {
    for (const auto& [name, graph] : {std::pair{"small_resnet", small_resnet()},
                                      std::pair{"every_operation", every_operation()},
                                      std::pair{"fused small_resnet", fuse(small_resnet())}}) {
        const auto want = gradients_of(graph, 1);
        for (const int stages : {2, 3, most_stages(graph)}) {
            SCOPED_TRACE(fmt::format("{}, stages: {}", name, stages));
            const auto got = gradients_of(graph, stages);
            ASSERT_EQ(got.size(), want.size());
            for (std::size_t part = 0; part < want.size(); ++part) {
                ASSERT_EQ(got[part].size(), want[part].size()) << part;
                double difference = 0, length = 0;
                for (std::size_t i = 0; i < want[part].size(); ++i) {
                    difference =
                        std::max<double>(difference, std::abs(got[part][i] - want[part][i]));
                    length = std::max<double>(length, std::abs(want[part][i]));
                }
                // fp32, gradients of a value with several readers summed in another order
                EXPECT_LE(difference, 1e-5 * length + 1e-7) << part;
            }
        }
    }
}

}  // namespace
}  // namespace hpcai::graph
