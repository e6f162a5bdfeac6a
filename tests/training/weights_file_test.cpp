// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/storage/safetensors.hpp>
#include <hpcai/training/weights_file.hpp>

#include "networks.hpp"
#include "storage/temporary_folder.hpp"

namespace hpcai::training {
namespace {

using storage::ElementType;
using storage::error_of;
using storage::SafetensorsFile;
using storage::StoredTensor;

/// A graph's store whose numbers are all different.
class WeightsFile : public testing::Test {
protected:
    WeightsFile() {
        fill(store_, 0);
        write_weights(path_, graph_, store_, 17);
    }

    static void fill(graph::ParameterStore& store, float from) {
        float value = from;
        for (std::size_t id = 0; id < store.ranges().size(); ++id) {
            for (float& element : store.parameter(static_cast<graph::ParameterId>(id))) {
                element = value += 0.25f;
            }
        }
        for (float& element : store.statistics()) element = value += 0.25f;
    }

    static std::vector<float> contents(graph::ParameterStore& store) {
        std::vector<float> all(store.parameters().begin(), store.parameters().end());
        all.insert(all.end(), store.statistics().begin(), store.statistics().end());
        return all;
    }

    /// Writes the file again with its tensors after `change`.
    void rewrite(const std::function<void(std::vector<StoredTensor>&)>& change) {
        const SafetensorsFile file = storage::read_safetensors(path_);
        std::vector<StoredTensor> tensors = file.tensors();
        change(tensors);
        storage::write_safetensors(path_, tensors, file.metadata());
    }

    /// Expects that reading fails with a message with the file and `part`, and that no parameter
    /// has changed.
    void expect_rejected(const std::string& part) {
        graph::ParameterStore store(graph_, *device_);
        fill(store, 1000);
        const std::vector<float> before = contents(store);
        const std::string message =
            error_of(ExitCode::data, [&] { read_weights(path_, graph_, store); });
        EXPECT_NE(message.find(path_.string()), std::string::npos) << message;
        EXPECT_NE(message.find(part), std::string::npos) << message;
        EXPECT_EQ(contents(store), before) << message;
    }

    storage::TemporaryFolder folder_;
    std::filesystem::path path_ = folder_ / "weights.safetensors";
    graph::Graph graph_ = graph::every_operation();
    std::unique_ptr<device::Device> device_ = device::make_cpu_device({});
    graph::ParameterStore store_{graph_, *device_};
};

StoredTensor& named(std::vector<StoredTensor>& tensors, const std::string& name) {
    for (StoredTensor& tensor : tensors) {
        if (tensor.name == name) return tensor;
    }
    throw std::runtime_error("no tensor " + name);
}

TEST_F(WeightsFile, GivesBackWhatWasWritten) {
    graph::ParameterStore other(graph_, *device_);
    read_weights(path_, graph_, other);
    EXPECT_EQ(contents(other), contents(store_));
    EXPECT_EQ(training_digest(graph_, other), training_digest(graph_, store_));
}

TEST_F(WeightsFile, HasTorchvisionsNamesShapesAndOrderOfElements) {
    const SafetensorsFile file = storage::read_safetensors(path_);
    EXPECT_EQ(file.metadata().at("format"), "pt");
    const StoredTensor* filters = file.find("conv1.weight");
    ASSERT_NE(filters, nullptr);
    EXPECT_EQ(filters->shape, (std::vector<std::int64_t>{16, 16, 3, 3}));
    EXPECT_EQ(filters->type, ElementType::f32);
    std::vector<float> stored(16 * 16 * 9);
    std::memcpy(stored.data(), filters->bytes.data(), filters->bytes.size());
    graph::ParameterId id = 0;
    while (graph_.parameters()[static_cast<std::size_t>(id)].name != "conv1.weight") ++id;
    const auto here = store_.parameter(id);
    // (filter 5, channel 7, row 2, column 1) in both orders
    EXPECT_EQ(stored[((5 * 16 + 7) * 3 + 2) * 3 + 1], here[((5 * 3 + 2) * 3 + 1) * 16 + 7]);

    for (const char* suffix : {".weight", ".bias", ".running_mean", ".running_var"}) {
        const StoredTensor* tensor = file.find(std::string("bn2") + suffix);
        ASSERT_NE(tensor, nullptr) << suffix;
        EXPECT_EQ(tensor->shape, (std::vector<std::int64_t>{16})) << suffix;
    }
    const StoredTensor* steps = file.find("bn2.num_batches_tracked");
    ASSERT_NE(steps, nullptr);
    EXPECT_EQ(steps->type, ElementType::i64);
    EXPECT_TRUE(steps->shape.empty());
    std::int64_t count = 0;
    std::memcpy(&count, steps->bytes.data(), sizeof count);
    EXPECT_EQ(count, 17);
    ASSERT_NE(file.find("fc.weight"), nullptr);
    EXPECT_EQ(file.find("fc.weight")->shape, (std::vector<std::int64_t>{5, 16}));
    EXPECT_EQ(file.tensors().size(), 3U + 3U * 5U + 2U);
}

TEST_F(WeightsFile, IsReadWithoutCountsOfBatches) {
    rewrite([](auto& tensors) {
        std::erase_if(tensors, [](const StoredTensor& tensor) {
            return tensor.name.ends_with(".num_batches_tracked");
        });
    });
    graph::ParameterStore other(graph_, *device_);
    read_weights(path_, graph_, other);
    EXPECT_EQ(contents(other), contents(store_));
}

TEST_F(WeightsFile, IsRejectedWhenATensorIsMissing) {
    for (const std::string name : {"conv2.weight", "bn1.running_var", "fc.bias"}) {
        write_weights(path_, graph_, store_, 1);
        rewrite([&name](auto& tensors) {
            std::erase_if(tensors, [&](const StoredTensor& t) { return t.name == name; });
        });
        expect_rejected("tensor " + name + " is missing");
    }
}

TEST_F(WeightsFile, IsRejectedWhenAShapeDiffers) {
    rewrite([](auto& tensors) { named(tensors, "conv2.weight").shape = {16, 1, 1, 16}; });
    expect_rejected("tensor conv2.weight has shape (16, 1, 1, 16), expected (16, 16, 1, 1)");
    write_weights(path_, graph_, store_, 1);
    rewrite([](auto& tensors) { named(tensors, "fc.weight").shape = {80}; });
    expect_rejected("tensor fc.weight has shape (80), expected (5, 16)");
}

TEST_F(WeightsFile, IsRejectedWhenATypeDiffers) {
    rewrite([](auto& tensors) { named(tensors, "bn0.bias").type = ElementType::i32; });
    expect_rejected("tensor bn0.bias must be F32");
}

TEST_F(WeightsFile, IsRejectedWithATensorOfAnotherModel) {
    const std::vector<std::byte> zeros(64);
    rewrite([&zeros](auto& tensors) {
        tensors.push_back({"layer9.weight", ElementType::f32, {16}, zeros});
    });
    expect_rejected("tensor layer9.weight does not belong to this model");
}

TEST_F(WeightsFile, IsRejectedWhenCutAnywhere) {
    const auto whole = std::filesystem::file_size(path_);
    for (const auto size : {std::uintmax_t{0}, std::uintmax_t{7}, whole / 8, whole - 1}) {
        std::filesystem::resize_file(path_, size);
        expect_rejected("");
        write_weights(path_, graph_, store_, 1);
    }
    std::filesystem::remove(path_);
    expect_rejected("");
}

/// A convolution, its norm and a linear layer over 2 x 2 pixels of 16 channels.
graph::Graph small_model(const std::string& prefix, const std::string& head) {
    graph::Graph graph;
    using graph::ParameterKind;
    graph.add_parameter({prefix + "conv1.weight", {16, 3, 3, 4}, ParameterKind::filters});
    graph.add_parameter({prefix + "bn1.weight", {16}, ParameterKind::norm_scale});
    graph.add_parameter({prefix + "bn1.bias", {16}, ParameterKind::norm_shift});
    graph.add_statistics({prefix + "bn1", 16});
    graph.add_parameter({.name = head + ".weight",
                         .shape = {5, 64},
                         .kind = ParameterKind::linear_weight,
                         .pixels = 4});
    return graph;
}

TEST_F(WeightsFile, HasTheColumnsOfALayerOverPixelsByChannel) {
    const graph::Graph graph = small_model("", "fc");
    graph::ParameterStore store(graph, *device_), other(graph, *device_);
    fill(store, 0);
    write_weights(path_, graph, store, 1);
    const SafetensorsFile file = storage::read_safetensors(path_);
    const StoredTensor* weight = file.find("fc.weight");
    ASSERT_NE(weight, nullptr);
    EXPECT_EQ(weight->shape, (std::vector<std::int64_t>{5, 64}));
    std::vector<float> stored(5 * 64);
    std::memcpy(stored.data(), weight->bytes.data(), weight->bytes.size());
    // (feature 3, pixel 2, channel 9) in both orders
    EXPECT_EQ(stored[(3 * 16 + 9) * 4 + 2], store.parameter(3)[(3 * 4 + 2) * 16 + 9]);
    read_weights(path_, graph, other);
    EXPECT_EQ(contents(other), contents(store));
}

TEST_F(WeightsFile, OfAClassifierIsTheStartOfADetectorsBackbone) {
    const graph::Graph classifier = small_model("", "fc");
    const graph::Graph detector = small_model("backbone.body.", "head");
    graph::ParameterStore from(classifier, *device_), to(detector, *device_);
    fill(from, 0);
    fill(to, 1000);
    const std::vector<float> head(to.parameter(3).begin(), to.parameter(3).end());
    write_weights(path_, classifier, from, 1);
    read_initial_weights(path_, detector, to);
    for (graph::ParameterId id = 0; id < 3; ++id) {
        EXPECT_TRUE(std::ranges::equal(to.parameter(id), from.parameter(id))) << id;
    }
    EXPECT_TRUE(std::ranges::equal(to.statistics(), from.statistics()));
    EXPECT_TRUE(std::ranges::equal(to.parameter(3), head));
    EXPECT_NE(error_of(ExitCode::data, [&] { read_weights(path_, detector, to); })
                  .find("tensor backbone.body.conv1.weight is missing"),
              std::string::npos);
}

TEST_F(WeightsFile, OfADetectorIsTheStartOfAllOfIt) {
    const graph::Graph detector = small_model("backbone.body.", "head");
    graph::ParameterStore from(detector, *device_), to(detector, *device_);
    fill(from, 0);
    write_weights(path_, detector, from, 1);
    read_initial_weights(path_, detector, to);
    EXPECT_EQ(contents(to), contents(from));
    rewrite([](auto& tensors) {
        std::erase_if(tensors, [](const StoredTensor& t) { return t.name == "head.weight"; });
    });
    EXPECT_NE(error_of(ExitCode::data, [&] { read_initial_weights(path_, detector, to); })
                  .find("tensor head.weight is missing"),
              std::string::npos);
}

TEST_F(WeightsFile, CannotBeWrittenIntoAFolderThatIsNotThere) {
    const std::string message = error_of(ExitCode::usage, [this] {
        write_weights(folder_ / "nowhere/weights.safetensors", graph_, store_, 1);
    });
    EXPECT_NE(message.find("nowhere"), std::string::npos) << message;
}

TEST_F(WeightsFile, DigestDependsOnEveryNumber) {
    const std::string digest = training_digest(graph_, store_);
    EXPECT_EQ(digest.size(), 64U);
    for (float* number : {&store_.parameters().front(), &store_.statistics().back()}) {
        const float before = *number;
        *number += 1;
        EXPECT_NE(training_digest(graph_, store_), digest);
        *number = before;
        EXPECT_EQ(training_digest(graph_, store_), digest);
    }
    store_.state(0)[0] = 5;
    store_.gradients()[0] = 5;
    EXPECT_EQ(training_digest(graph_, store_), digest) << "only what was trained counts";
}

}  // namespace
}  // namespace hpcai::training
