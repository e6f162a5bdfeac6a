// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/base/clock.hpp>
#include <hpcai/plan/pipeline.hpp>
#include <hpcai/training/step_runner.hpp>

#include "stage_boundary.hpp"

namespace hpcai::training {
namespace {

/// Accumulates the gradients of micro-batches in fp32 and in the order of the calls. The backward
/// pass of each micro-batch overwrites the gradients of the previous micro-batch.
class GradientAccumulator {
public:
    /// Allocates a second buffer of the size of `gradients` if there are several micro-batches.
    GradientAccumulator(device::Device& device, std::span<float> gradients, int micro_batches)
        : device_(device), gradients_(gradients), micro_batches_(micro_batches) {
        if (micro_batches == 1) return;
        sums_ = device.allocate(gradients.size_bytes());
        add_to_sums_ =
            make_add({static_cast<float*>(sums_->data()), gradients.size()}, gradients.data());
    }

    /// Enqueues the addition of a micro-batch's gradients. Call it after the backward pass of each
    /// micro-batch (from 0) except the last micro-batch.
    void add(int micro_batch) {
        if (micro_batch == 0) {
            device_.enqueue_copy(sums_->data(), gradients_.data(), gradients_.size_bytes());
        } else {
            add_to_sums_->run(ops::Pass::forward);
        }
    }

    /// Call it before the first step with the disjoint ranges of all calls of finish().
    void prepare(const std::vector<comm::Range>& ranges) {
        if (micro_batches_ == 1) return;
        for (const comm::Range& elements : ranges) {
            const std::size_t end = std::min(elements.end, gradients_.size());
            if (elements.begin >= end) continue;
            auto* sums = static_cast<float*>(sums_->data());
            add_to_gradients_[elements.begin] = make_add(
                gradients_.subspan(elements.begin, end - elements.begin), sums + elements.begin);
        }
    }

    /// Enqueues the last addition for these elements of `gradients`, which then hold the sum of all
    /// micro-batches. Call it after the last micro-batch has computed them. Elements beyond the end
    /// of `gradients` (the failure status) do not change.
    void finish(const comm::Range& elements) {
        if (micro_batches_ == 1 || elements.begin >= gradients_.size()) return;
        add_to_gradients_.at(elements.begin)->run(ops::Pass::forward);
    }

private:
    std::unique_ptr<device::Kernel> make_add(std::span<float> sums, float* terms) {
        const ops::Add add{tensor::Shape{static_cast<std::int64_t>(sums.size())}};
        auto kernel = device_.build(add, {tensor::DType::f32, device::Mode::inference, false});
        workspaces_.push_back(device_.allocate(kernel->memory().workspace_bytes));
        device::KernelTensors tensors;
        tensors.inputs = {sums.data(), terms};
        tensors.output = sums.data();
        tensors.workspace = workspaces_.back()->data();
        kernel->bind(tensors);
        return kernel;
    }

    device::Device& device_;
    std::span<float> gradients_;
    int micro_batches_;
    std::unique_ptr<device::Memory> sums_;
    std::vector<std::unique_ptr<device::Memory>> workspaces_;
    std::unique_ptr<device::Kernel> add_to_sums_;
    std::map<std::size_t, std::unique_ptr<device::Kernel>> add_to_gradients_;  // by first element
};

constexpr std::byte kPixelPadding{0}, kLabelPadding{0xFF};  // as feed_padding(): label -1

/// Returns the route of a step's labels between this rank and its peer in `stage`.
Route label_route(const StepSetup& setup, const PipelineShare& share, int stage) {
    const plan::Layout& layout = share.layout;
    const int rows =
        layout.micro_batch_size(setup.config.training.batch_size) * layout.micro_batches;
    return {peer_in_stage(layout, share.group.rank(), stage), kLabelTag,
            static_cast<std::size_t>(rows) * sizeof(std::int32_t)};
}

class PipelineStep final : public StepRunner {
public:
    PipelineStep(const StepSetup& setup, const PipelineShare& share,
                 GradientAccumulator& accumulator)
        : StepRunner(setup),
          share_(share),
          stage_(layout().stage_of(share_.group.rank())),
          tasks_(plan::pipeline_tasks(setup.config.parallel.schedule, layout().stages, stage_,
                                      layout().micro_batches)),
          accumulator_(accumulator),
          boundary_(share_.group, layout(), device_, network_),
          labels_out_(label_route(setup, share, layout().stages - 1)),
          label_outbox_(share_.group),
          labels_in_(share_.group, label_route(setup, share, 0)),
          labels_(labels_out_.bytes) {
        ensure(static_cast<int>(share_.networks.size()) >= plan::micro_batches_in_flight(tasks_),
               "got {} networks for {} micro-batches in flight", share_.networks.size(),
               plan::micro_batches_in_flight(tasks_));
        accumulator_.prepare(buckets_.ranges());
        steps_between_reads_ = std::max<std::int64_t>(1, steps_between_reads_);
    }

    void run_batch(const data::Batch* batch, double learning_rate, bool has_failed) override {
        enter(log_, Phase::forward);
        begin_step(learning_rate, has_failed);
        graph::Observer no_observer;
        network_.prepare_other_copies(no_observer);
        boundary_.begin(layout().micro_batches);
        if (is_last() && !is_first()) labels_in_.begin(1);
        if (is_first()) load_samples(batch);
        for (const plan::PipelineTask& task : tasks_) {
            if (task.pass == plan::PipelinePass::forward) {
                forward(task.micro_batch);
            } else {
                backward(task.micro_batch);
            }
        }
        enter(log_, Phase::communication);
        buckets_.finish();
        wait_until([&] { return boundary_.test() && label_outbox_.test(); });
        enter(log_, Phase::optimizer);
        agree_on_update();
        update_->run();
        device_.finish_step(loss_scale_, network_.step_scalars());
        enter(log_, Phase::other);
        reducer_.end_step();
        accounting_.bytes_sent = boundary_.bytes_sent() + label_outbox_.bytes_sent();
        if (layout().shards > 1) {
            accounting_.shards = share_.exchange->accounting();
            if (layout().stages == 1) accounting_.shards.wait_seconds += accounting_.wait_seconds;
        }
        ++accounting_.steps;
    }
    StepResults read() override {
        StepResults results = StepRunner::read();
        std::array<double, 2> sums{results.loss_sum, static_cast<double>(results.samples)};
        enter(log_, Phase::communication);
        share_.group.all_reduce_sum(sums);
        enter(log_, Phase::other);
        results.loss_sum = sums[0];
        results.samples = static_cast<std::int64_t>(sums[1]);
        results.has_failed = has_failed_;
        return results;
    }
    MessageAccounting messages() const override { return accounting_; }
    double communication_seconds() const override {
        const double shard_seconds =
            share_.exchange == nullptr ? 0 : share_.exchange->accounting().wait_seconds;
        return StepRunner::communication_seconds() + accounting_.wait_seconds + shard_seconds;
    }

private:
    const plan::Layout& layout() const { return share_.layout; }
    bool is_first() const { return stage_ == 0; }
    bool is_last() const { return stage_ + 1 == layout().stages; }
    int shard() const { return layout().model_shard_of(share_.group.rank()); }
    graph::Network& network_of(int micro_batch) const {
        return *share_.networks[static_cast<std::size_t>(micro_batch) % share_.networks.size()];
    }
    /// Progresses the messages between kernels.
    auto observer() {
        return KernelObserver(log_, [this](const graph::KernelCall&) { boundary_.test(); });
    }

    /// Sets images_ to the first shard's images, or to padding without a batch. Forwards labels.
    void load_samples(const data::Batch* batch) {
        const std::size_t image_bytes =
            network_.input("images").size() * static_cast<std::size_t>(layout().micro_batches);
        std::span<const std::byte> images, labels;
        if (batch != nullptr && shard() == 0) {
            images = batch->images.raw();
            labels = batch->labels.raw();
            ensure(images.size() == image_bytes && labels.size() == labels_out_.bytes,
                   "got {} bytes of images and {} bytes of labels, expected {} and {}",
                   images.size(), labels.size(), image_bytes, labels_out_.bytes);
            samples_since_read_ += batch->samples;
        }
        if (images.empty() || layout().shards > 1) {
            sample_memory_.resize(image_bytes + labels_out_.bytes);
            const auto own_images = std::span(sample_memory_).first(image_bytes);
            const auto own_labels = std::span(sample_memory_).subspan(image_bytes);
            std::ranges::fill(own_images, kPixelPadding);
            std::ranges::fill(own_labels, kLabelPadding);
            std::ranges::copy(images, own_images.begin());
            std::ranges::copy(labels, own_labels.begin());
            images = own_images;
            labels = own_labels;
        }
        if (layout().shards > 1) share_samples();
        images_ = images;
        if (is_last()) {
            std::ranges::copy(labels, labels_.begin());
        } else {
            label_outbox_.send(labels_out_, [&](std::span<std::byte> to) {
                std::ranges::copy(labels, to.begin());
            });
        }
    }
    /// Sends sample_memory_ from a replica's first shard to the other shards of the first stage.
    void share_samples() {
        share_.exchange->exchange(
            {.bytes_to = [&](int) { return shard() == 0 ? sample_memory_.size() : 0; },
             .bytes_from = [&](int from) { return from == 0 ? sample_memory_.size() : 0; },
             .write =
                 [&](int, std::span<std::byte> to) {
                     if (shard() == 0) std::ranges::copy(sample_memory_, to.begin());
                 },
             .read =
                 [&](int from, std::span<const std::byte> samples) {
                     if (from != 0 || shard() == 0) return;
                     std::ranges::copy(samples, sample_memory_.begin());
                 }});
    }
    void feed(graph::Network& network, int micro_batch) {
        const auto slice = [&](std::span<const std::byte> all, std::size_t bytes) {
            return all.subspan(bytes * static_cast<std::size_t>(micro_batch), bytes);
        };
        if (is_first()) network.set_input("images", slice(images_, network.input("images").size()));
        if (!is_last()) return;
        if (micro_batch == 0 && !is_first()) {
            wait_until([&] { return labels_in_.test(); });
            labels_in_.take([&](auto bytes) { std::ranges::copy(bytes, labels_.begin()); });
        }
        network.set_input("labels", slice(labels_, network.input("labels").size()));
    }
    void forward(int micro_batch) {
        graph::Network& network = network_of(micro_batch);
        auto kernels = observer();
        enter(log_, Phase::forward);
        feed(network, micro_batch);
        enter(log_, Phase::communication);
        wait_until([&] { return boundary_.has_values(); });
        boundary_.take_values(network);
        enter(log_, Phase::forward);
        network.forward(kernels);
        if (shard() == 0) {  // all shards compute the same losses
            for (const std::span<const float> losses : network.losses()) {
                device_.add_losses(losses, network.step_scalars());
            }
        }
        enter(log_, Phase::communication);
        boundary_.send_values(network);
    }
    void backward(int micro_batch) {
        graph::Network& network = network_of(micro_batch);
        enter(log_, Phase::communication);
        wait_until([&] { return boundary_.has_gradients(); });
        boundary_.take_gradients(network);
        enter(log_, Phase::backward);
        set_scalar(&device::StepScalars::micro_batch, static_cast<std::uint32_t>(micro_batch));
        if (micro_batch + 1 == layout().micro_batches) {
            KernelObserver reduce_gradients(log_, [this](const graph::KernelCall& call) {
                boundary_.test();
                notify_buckets(call);
            });
            notify_status();
            network.backward(reduce_gradients);
        } else {
            auto kernels = observer();
            network.backward(kernels);
            accumulator_.add(micro_batch);
        }
        enter(log_, Phase::communication);
        boundary_.send_gradients(network);
    }
    void agree_on_update() {
        constexpr double good = 0, not_finite = 1, failed = 2;
        device_.check_finite(checked_gradients_, network_.step_scalars());
        reducer_.check();
        double worst = good;
        if (network_.read_step_scalars().finite == 0) worst = not_finite;
        if (std::isinf(store_.status())) worst = failed;
        const Stopwatch watch;
        share_.group.all_reduce_max(std::span(&worst, 1));
        accounting_.wait_seconds += watch.seconds();
        has_failed_ = worst == failed;
        if (worst == good) return;
        reducer_.skip_step();
        set_scalar(&device::StepScalars::finite, std::uint32_t{0});
    }
    template <typename Done>
    void wait_until(Done is_done) {
        if (is_done()) return;
        const Stopwatch watch;
        share_.group.wait_until([&] {
            boundary_.test();
            return is_done();
        });
        accounting_.wait_seconds += watch.seconds();
    }

    const PipelineShare& share_;
    int stage_;
    std::vector<plan::PipelineTask> tasks_;
    GradientAccumulator& accumulator_;
    StageBoundary boundary_;
    Route labels_out_;
    Outbox label_outbox_;
    Inbox labels_in_;
    std::vector<std::byte> labels_;         // labels of the step, at the last stage
    std::vector<std::byte> sample_memory_;  // images and labels that are not in the batch's memory
    std::span<const std::byte> images_;     // images of the step, at the first stage
    bool has_failed_ = false;               // a rank failed in the last step
    MessageAccounting accounting_;
};

}  // namespace

std::unique_ptr<StepRunner> make_pipeline_step(StepSetup setup, const PipelineShare& share) {
    // The buckets own the accumulator through before_all_reduce. Freeing the accumulator waits for
    // the device, so the buckets must end their all-reduces first.
    const auto accumulator = std::make_shared<GradientAccumulator>(
        setup.device, setup.store.gradients(), share.layout.micro_batches);
    setup.before_all_reduce = [accumulator, before_all_reduce = std::move(setup.before_all_reduce)](
                                  const comm::Range& elements) {
        accumulator->finish(elements);
        if (before_all_reduce) before_all_reduce(elements);
    };
    return std::make_unique<PipelineStep>(setup, share, *accumulator);
}

}  // namespace hpcai::training
