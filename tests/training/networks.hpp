// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <hpcai/base/philox.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/training/initialize.hpp>
#include <hpcai/training/trainer.hpp>

#include "graph/graphs.hpp"

namespace hpcai::training {

inline constexpr std::int64_t kClasses = 3;
inline constexpr std::int64_t kSide = 8;  // pixels
inline constexpr int kSmallBatch = 16;    // images of a step

/// Ignores the steps of a training.
inline void ignore_step(const StepReport&) {}

/// Adds GraphMaker::norm with statistics over `samples` samples each.
inline graph::ValueId norm_over(graph::GraphMaker& make, const std::string& name, graph::ValueId x,
                                std::int64_t samples) {
    const tensor::Shape shape = make.shape(x);
    const tensor::Shape channels{shape[3]};
    const auto scale =
        make.graph.add_parameter({name + ".weight", channels, graph::ParameterKind::norm_scale});
    const auto shift =
        make.graph.add_parameter({name + ".bias", channels, graph::ParameterKind::norm_shift});
    return make.graph.add_node(name, ops::BatchNorm{.input = shape, .statistics_samples = samples},
                               {x}, {scale, shift}, make.graph.add_statistics({name, channels[0]}));
}

/// Two convolutions, one in a residual branch, and a classifier of kClasses.
inline graph::Graph small_graph(std::int64_t batch, std::int64_t statistics_samples = 0) {
    graph::GraphMaker make;
    graph::ValueId x = make.images({batch, kSide, kSide, 3});
    x = norm_over(make, "bn0", make.convolution("conv0", x, 16, 3), statistics_samples);
    x = make.relu("relu0", x);
    const graph::ValueId branch =
        norm_over(make, "bn1", make.convolution("conv1", x, 16, 3), statistics_samples);
    return make.finish(make.relu("relu1", make.add("add1", branch, x)), kClasses);
}

/// Batches of bars whose slope is the class, learnable in a few steps. An optional failure is
/// thrown instead of batch `failing_batch`.
class ToySource final : public data::BatchSource {
public:
    ToySource(std::int64_t rows, std::int64_t batches)
        : rows_(rows),
          batches_(batches),
          pixels_(static_cast<std::size_t>(rows * kSide * kSide * 3)),
          labels_(static_cast<std::size_t>(rows)) {
        batch_.images = {pixels_.data(), {rows, kSide, kSide, 3}, tensor::DType::u8};
        batch_.labels = {labels_.data(), {rows}, tensor::DType::s32};
        batch_.samples = rows;
    }

    /// This rank's first row of a batch of `global_rows`.
    void set_place(std::int64_t first_row, std::int64_t global_rows) {
        first_row_ = first_row;
        global_rows_ = global_rows;
    }
    void set_failure(std::int64_t batch, std::function<void()> failure) {
        failing_batch_ = batch;
        failure_ = std::move(failure);
    }
    /// Number of rows of the last batch that are not padding.
    void set_last_samples(std::int64_t samples) { last_samples_ = samples; }
    void restart() { next_ = 0; }

    std::int64_t batches() const override { return batches_; }
    double wait_seconds() const override { return 0; }
    const data::Batch& next() override {
        if (next_ == failing_batch_ && failure_) failure_();
        const std::int64_t global_rows = global_rows_ == 0 ? rows_ : global_rows_;
        for (std::int64_t row = 0; row < rows_; ++row) {
            draw(next_ * global_rows + first_row_ + row, static_cast<std::size_t>(row));
        }
        ++next_;
        batch_.samples = next_ == batches_ && last_samples_ >= 0 ? last_samples_ : rows_;
        for (auto row = static_cast<std::size_t>(batch_.samples); row < labels_.size(); ++row) {
            labels_[row] = -1;
        }
        return batch_;
    }

private:
    void draw(std::int64_t sample, std::size_t row) {
        CounterStream random(5, RandomPurpose::test, static_cast<std::uint32_t>(sample));
        const std::uint32_t label = random.below(kClasses);
        const std::uint32_t shift = random.below(4);
        labels_[row] = static_cast<std::int32_t>(label);
        for (std::uint32_t y = 0; y < kSide; ++y) {
            for (std::uint32_t x = 0; x < kSide; ++x) {
                const std::uint32_t along = label == 0 ? x : label == 1 ? y : x + y;
                const std::uint32_t level = (along + shift) / 2 % 2 * 150 + random.below(100);
                for (std::size_t c = 0; c < 3; ++c) {
                    pixels_[((row * kSide + y) * kSide + x) * 3 + c] =
                        static_cast<std::uint8_t>(level);
                }
            }
        }
    }

    std::int64_t rows_, batches_;
    std::int64_t first_row_ = 0, global_rows_ = 0, next_ = 0;
    std::int64_t failing_batch_ = -1, last_samples_ = -1;
    std::function<void()> failure_;
    std::vector<std::uint8_t> pixels_;
    std::vector<std::int32_t> labels_;
    data::Batch batch_;
};

inline config::Config small_config(int batch, int epochs) {
    config::Config config;
    config.workload.classes = static_cast<int>(kClasses);
    config.workload.epochs = epochs;
    config.training.batch_size = batch;
    config.training.learning_rate = 0.05;
    config.training.learning_rate_batch = batch;
    config.training.schedule = config::Schedule::constant;
    config.training.warmup_epochs = 0;
    return config;
}

/// One rank of a group that trains the small graph.
class SmallModel {
public:
    SmallModel(config::Config configuration, std::int64_t steps_per_epoch,
               comm::Communicator& ranks, const graph::Graph& graph)
        : SmallModel(std::move(configuration), steps_per_epoch, ranks, graph,
                     device::make_cpu_device({})) {}

    /// Makes a model on any device.
    SmallModel(config::Config configuration, std::int64_t steps_per_epoch,
               comm::Communicator& ranks, const graph::Graph& graph,
               std::unique_ptr<device::Device> on, tensor::DType compute = tensor::DType::f32,
               std::unique_ptr<comm::GradientReducer> sums = nullptr)
        : config(std::move(configuration)),
          device(std::move(on)),
          store(graph, *device, config::optimizer_states(config.training.optimizer)),
          network(graph, *device, store, {device::Mode::training, compute}),
          reducer(sums ? std::move(sums) : comm::make_mpi_reducer(ranks)) {
        initialize(graph, config.run.seed, 0, store);
        trainer = std::make_unique<Trainer>(
            TrainerSetup{config, network, steps_per_epoch, *reducer}, *device, store, ranks);
    }

    config::Config config;
    std::unique_ptr<device::Device> device;
    graph::ParameterStore store;
    graph::Network network;
    std::unique_ptr<comm::GradientReducer> reducer;
    std::unique_ptr<Trainer> trainer;
};

}  // namespace hpcai::training
