// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/group/make_gradient_reducer.hpp>
#include <hpcai/group/model.hpp>
#include <hpcai/group/recompute.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/training/checkpoint.hpp>
#include <hpcai/training/trainer.hpp>
#include <hpcai/training/weights_file.hpp>

#include "epoch_source.hpp"
#include "predict.hpp"

namespace hpcai::group {
namespace {

class FirstBatches final : public data::BatchSource {
public:
    FirstBatches(data::BatchSource& source, std::int64_t limit)
        : source_(source), batches_(std::min(source.batches(), limit)) {}

    std::int64_t batches() const override { return batches_; }
    const data::Batch& next() override { return source_.next(); }
    double wait_seconds() const override { return source_.wait_seconds(); }

private:
    data::BatchSource& source_;
    std::int64_t batches_;
};

/// Loads the kept checkpoint of `step` on all ranks. Its files must have the digest of config.yaml.
void load_checkpoint(const context::RunContext& context, std::int64_t step,
                     comm::Communicator& ranks, training::Trainer& trainer) {
    const auto folder = results::kept_checkpoint_directory(context.output, context.place.group);
    const training::CheckpointLocation location{
        folder, storage::sha256_hex_of_file(context.output / "config.yaml"), ranks.rank(),
        ranks.size()};
    const training::Checkpoint found = training::read_checkpoint(location, step);
    const auto launches = comm::all_gather(ranks, found.launch_id);
    require(std::ranges::count(launches, launches.front()) == ranks.size(), ExitCode::data,
            "'{}': its files are from different launches",
            training::checkpoint_folder(location, step).string());
    trainer.restore(found.snapshot);
    require(trainer.steps_done() == step, ExitCode::data,
            "'{}': expected the state of step {}, got that of step {}",
            training::checkpoint_folder(location, step).string(), step, trainer.steps_done());
    trainer.broadcast_parameters();
}

/// Trains steps as one rank of a group. Returns the mean loss of this rank's samples in each step.
std::vector<double> train_as_rank(const context::RunContext& context,
                                  const context::Resources& resources, StepRange wanted,
                                  comm::Communicator& ranks) {
    const config::Config& config = context.config;
    const data::SampleSets& samples = resources.samples;
    Model model(make_training_graph(context, *samples.training), context, resources);
    const comm::AllReduceOptions options = all_reduce_options_of(context);
    const auto reducer = comm::make_point_to_point_reducer(ranks, nullptr, options);
    model.sync_batch_norm_group().connect(ranks, options.node_of_rank);
    const auto drawn =
        static_cast<std::int64_t>(make_sampler(context, samples).in_bag_size(model.number()));
    const std::int64_t steps_per_epoch = drawn / config.training.batch_size;
    require(steps_per_epoch > 0, ExitCode::data,
            "model {}: a bootstrap of {} samples does not fill one batch of training.batch_size {}",
            model.number(), drawn, config.training.batch_size);
    EpochSource source(context, resources, nullptr, steps_per_epoch);
    training::Trainer trainer({.config = config,
                               .network = *model.networks().front(),
                               .steps_per_epoch = steps_per_epoch,
                               .reducer = *reducer,
                               .sync_batch_norm = &model.sync_batch_norm_group(),
                               .group = context.place.group},
                              *resources.device, model.store(), ranks);
    std::vector<double> losses;
    const auto add_loss = [&](const training::StepReport& step) { losses.push_back(step.loss); };
    if (wanted.first > 0) load_checkpoint(context, wanted.first, ranks, trainer);
    const std::int64_t end = wanted.first + wanted.steps;
    training::TrainingPosition position = trainer.position();
    for (int epoch = position.epoch; epoch * steps_per_epoch < end; ++epoch) {
        source.begin(static_cast<std::uint32_t>(epoch), std::exchange(position.steps, 0));
        FirstBatches batches(source.batches(), end - epoch * steps_per_epoch);
        trainer.train_epoch(epoch, batches, add_loss);
    }
    return losses;
}

}  // namespace

context::Resources open_resources(const config::Config& config, const std::string& precision,
                                  const data::SampleSets& samples, int ranks) {
    const device::Cores cores = device::count_cores();
    context::Resources resources{
        .device = context::open_device(config, cores, {.ranks_sharing_cores = ranks}).device,
        .precision = {},
        .threads = device::threads_for_rank(config.device.threads, cores, ranks),
        .samples = samples};
    const auto available = context::available_precisions(context::formats_of(*resources.device));
    const auto found = std::ranges::find(available, context::precision_named(precision));
    if (found != available.end()) resources.precision = *found;
    return resources;
}

training::Predictions predict_samples(const context::RunContext& context,
                                      const context::Resources& resources,
                                      const TrainedModel& model,
                                      std::shared_ptr<const data::SampleSet> samples) {
    const graph::Graph graph = make_training_graph(context, *samples, model.edits);
    graph::ParameterStore store(graph, *resources.device, 0);
    training::read_weights(model.weights, graph, store);
    const auto self = comm::make_self_communicator();
    return predict(context, resources, {store, model.edits}, std::move(samples), *self).predictions;
}

std::vector<double> train_again(const context::RunContext& context, const data::SampleSets& samples,
                                const std::string& precision, StepRange wanted) {
    context::RunContext run = context;
    run.config.device.kind = config::DeviceKind::cpu;
    run.config.run.loss_steps = 1;
    std::vector<double> losses;
    comm::run_as_threads(run.controller.layout().degree, [&](comm::Communicator& ranks) {
        context::RunContext mine = run;
        mine.place = run.controller.place(run.controller.world_rank_of(wanted.group, ranks.rank()));
        const context::Resources resources =
            open_resources(mine.config, precision, samples, ranks.size());
        std::vector<double> found = train_as_rank(mine, resources, wanted, ranks);
        if (ranks.rank() == 0) losses = std::move(found);
    });
    return losses;
}

}  // namespace hpcai::group
