// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/training/pipeline_step.hpp>
#include <hpcai/training/training_step.hpp>

#include "gradient_accumulator.hpp"
#include "sample_messages.hpp"
#include "stage_boundary.hpp"
#include "step_parts.hpp"

namespace hpcai::training {
namespace {

constexpr int kLabelTag = 8194;  // beside those of StageBoundary

constexpr std::byte kNoPixel{0}, kNoLabel{0xFF};  // of padding

/// The labels of a rank's share of a batch go from the first stage to the last.
Route label_route(const PipelineSetup& setup, bool is_outgoing) {
    const plan::Layout& layout = setup.share.layout;
    const int rank = setup.share.group.rank();
    const int rows = layout.rows(setup.config.training.batch_size) * layout.micro_batches;
    return {layout.group_rank_of(is_outgoing ? layout.stages - 1 : 0, layout.replica_of(rank),
                                 layout.part_of(rank)),
            kLabelTag, static_cast<std::size_t>(rows) * sizeof(std::int32_t)};
}

}  // namespace

class PipelineStep::Worker {
public:
    explicit Worker(const PipelineSetup& setup);

    void run(const data::Batch* batch, double learning_rate, bool has_failed);
    StepResults read();
    std::int64_t steps_between_readings() const { return steps_between_readings_; }
    const comm::GradientBuckets& buckets() const { return buckets_; }
    const MessageAccounting& messages() const { return accounting_; }
    double communication_seconds() const;
    void save(Snapshot& to) {
        save_numbers(first_network(), to);
        save_residuals(reducer_, buckets_, store_, to);
    }
    void restore(const Snapshot& from) {
        skipped_before_ = restore_numbers(from, device_, first_network()).skipped_steps;
        restore_residuals(from, reducer_, buckets_, store_);
    }

private:
    /// Lets messages advance between kernels.
    class Progress : public graph::Observer {
    public:
        Progress(StageBoundary& boundary, graph::Observer& first)
            : boundary_(boundary), first_(first) {}
        void before(const graph::Step& step) override { first_.before(step); }
        void after(const graph::Step& step) override {
            first_.after(step);
            boundary_.test();
        }

    private:
        StageBoundary& boundary_;
        graph::Observer& first_;
    };

    /// The same in the last backward pass, after which gradients can be summed.
    class LastProgress final : public Progress {
    public:
        LastProgress(const Progress& progress, comm::GradientBuckets& buckets)
            : Progress(progress), buckets_(buckets) {}
        void after(const graph::Step& step) override {
            Progress::after(step);
            notify_buckets(step, buckets_);
        }

    private:
        comm::GradientBuckets& buckets_;
    };

    const plan::Layout& layout() const { return share_.layout; }
    bool is_first() const { return stage_ == 0; }
    bool is_last() const { return stage_ + 1 == layout().stages; }
    int part() const { return layout().part_of(share_.group.rank()); }
    /// Which every part computes alike.
    bool counts_losses() const { return part() == 0; }
    graph::Network& first_network() const { return *share_.networks.front(); }
    graph::Network& network_of(int micro_batch) const {
        return *share_.networks[static_cast<std::size_t>(micro_batch) % share_.networks.size()];
    }

    void refresh_copies();
    void begin(const data::Batch* batch);
    void take_samples(const data::Batch* batch);
    void feed(graph::Network& network, int micro_batch);
    void forward(int micro_batch);
    void backward(int micro_batch);
    void agree();
    template <typename Done>
    void wait_until(Done is_done);

    device::Device& device_;
    graph::ParameterStore& store_;
    comm::GradientReducer& reducer_;
    const PipelineShare& share_;
    int stage_;
    std::vector<plan::PipelineTask> tasks_;
    device::LossScalePolicy loss_scale_;
    std::span<const float> checked_;  // must be finite
    std::unique_ptr<device::Update> update_;
    GradientAccumulator sum_;
    comm::GradientBuckets buckets_;
    StageBoundary boundary_;
    Route labels_out_;
    Outbox label_outbox_;
    Inbox labels_in_;
    std::vector<std::byte> labels_;      // of the step, at the last stage
    std::vector<std::byte> handed_;      // images and labels, where they are not the batch's
    std::span<const std::byte> images_;  // of the step, at the first stage
    std::int64_t steps_between_readings_;
    std::int64_t unread_samples_ = 0;
    std::uint32_t skipped_before_ = 0;
    bool has_failed_ = false;                // any rank, in the last step
    std::optional<std::uint64_t> prepared_;  // copies, after so many writes of parameters
    MessageAccounting accounting_;
    StepLog* log_;
};

PipelineStep::Worker::Worker(const PipelineSetup& setup)
    : device_(setup.device),
      store_(setup.store),
      reducer_(setup.reducer),
      share_(setup.share),
      stage_(layout().stage_of(share_.group.rank())),
      tasks_(plan::pipeline_tasks(setup.config.parallel.schedule, layout().stages, stage_,
                                  layout().micro_batches)),
      loss_scale_(plan_loss_scale(setup.config.training, first_network().compute())),
      checked_(checked_gradients(first_network(), store_)),
      update_(device_.build(plan_optimizer(first_network(), store_, setup.config.training),
                            optimizer_tensors(first_network(), store_))),
      sum_(device_, store_.gradients(), layout().micro_batches),
      buckets_(reducer_, store_.gradients_and_status(), ranges_and_status(store_),
               bucket_options(setup.config.communication),
               [this, before_sum = setup.before_sum](const comm::Range& elements) {
                   sum_.finish(elements);
                   if (before_sum) before_sum(elements);
               }),
      boundary_(share_.group, device_, first_network(),
                neighbours_of(layout(), share_.group.rank())),
      labels_out_(label_route(setup, true)),
      label_outbox_(share_.group),
      labels_in_(share_.group, label_route(setup, false)),
      labels_(labels_out_.bytes),
      steps_between_readings_(std::max(1, setup.config.run.loss_steps)),
      log_(setup.log) {
    ensure(static_cast<int>(share_.networks.size()) >= plan::micro_batches_in_flight(tasks_),
           "{} networks for {} micro-batches in flight", share_.networks.size(),
           plan::micro_batches_in_flight(tasks_));
    sum_.prepare(buckets_.ranges());
    start_loss_scale(setup.config.training, loss_scale_, device_, first_network());
    watch_sums(log_, buckets_);
}

void PipelineStep::Worker::run(const data::Batch* batch, double learning_rate, bool has_failed) {
    enter(log_, Phase::forward);
    set_number(device_, first_network(), &device::StepScalars::learning_rate,
               static_cast<float>(learning_rate));
    store_.enqueue_status(has_failed ? std::numeric_limits<float>::infinity() : 0.0f);
    refresh_copies();
    begin(batch);
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
    agree();
    update_->run();
    device_.finish_step(loss_scale_, first_network().step_scalars());
    enter(log_, Phase::other);
    reducer_.end_step();
    accounting_.bytes_sent = boundary_.bytes_sent() + label_outbox_.bytes_sent();
    if (layout().parts > 1) {
        accounting_.parts = share_.exchange->accounting();
        if (layout().stages == 1) accounting_.parts.wait_seconds += accounting_.wait_seconds;
    }
    ++accounting_.steps;
}

void PipelineStep::Worker::refresh_copies() {
    graph::Observer nobody;
    if (prepared_ != store_.parameter_writes()) first_network().prepare_copies(nobody);
    prepared_ = store_.parameter_writes();
    first_network().prepare_rest(nobody);
}

void PipelineStep::Worker::begin(const data::Batch* batch) {
    boundary_.begin(layout().micro_batches);
    if (is_last() && !is_first()) labels_in_.begin(1);
    if (!is_first()) return;
    take_samples(batch);
}

/// Of the batch where this rank reads it, or padding where it has none.
void PipelineStep::Worker::take_samples(const data::Batch* batch) {
    const std::size_t image_bytes =
        first_network().input("images").size() * static_cast<std::size_t>(layout().micro_batches);
    std::span<const std::byte> images, labels;
    if (batch != nullptr && part() == 0) {
        images = batch->images.raw();
        labels = batch->labels.raw();
        ensure(images.size() == image_bytes && labels.size() == labels_out_.bytes,
               "{} bytes of images and {} bytes of labels for {} and {}", images.size(),
               labels.size(), image_bytes, labels_out_.bytes);
        unread_samples_ += batch->samples;
    }
    if (images.empty() || layout().parts > 1) {
        handed_.resize(image_bytes + labels_out_.bytes);
        const auto pixels = std::span(handed_).first(image_bytes);
        const auto classes = std::span(handed_).subspan(image_bytes);
        std::ranges::fill(pixels, kNoPixel);
        std::ranges::fill(classes, kNoLabel);
        std::ranges::copy(images, pixels.begin());
        std::ranges::copy(labels, classes.begin());
        images = pixels;
        labels = classes;
    }
    if (layout().parts > 1) {
        SampleMessages messages(part(), handed_);
        share_.exchange->exchange(messages);
    }
    images_ = images;
    if (is_last()) {
        std::ranges::copy(labels, labels_.begin());
    } else {
        label_outbox_.send(labels_out_,
                           [&](std::span<std::byte> to) { std::ranges::copy(labels, to.begin()); });
    }
}

void PipelineStep::Worker::feed(graph::Network& network, int micro_batch) {
    const auto of_micro_batch = [&](std::span<const std::byte> all, std::size_t bytes) {
        return all.subspan(bytes * static_cast<std::size_t>(micro_batch), bytes);
    };
    if (is_first()) {
        network.set_input("images", of_micro_batch(images_, network.input("images").size()));
    }
    if (!is_last()) return;
    if (micro_batch == 0 && !is_first()) {
        wait_until([&] { return labels_in_.test(); });
        labels_in_.take([&](auto bytes) { std::ranges::copy(bytes, labels_.begin()); });
    }
    network.set_input("labels", of_micro_batch(labels_, network.input("labels").size()));
}

void PipelineStep::Worker::forward(int micro_batch) {
    graph::Network& network = network_of(micro_batch);
    graph::Observer nobody;
    Progress progress(boundary_, kernels_of(log_, nobody));
    enter(log_, Phase::forward);
    feed(network, micro_batch);
    enter(log_, Phase::communication);
    wait_until([&] { return boundary_.has_values(); });
    boundary_.take_values(network);
    enter(log_, Phase::forward);
    network.forward(progress);
    for (const std::span<const float> losses : network.losses()) {
        if (counts_losses()) device_.add_losses(losses, network.step_scalars());
    }
    enter(log_, Phase::communication);
    boundary_.send_values(network);
}

void PipelineStep::Worker::backward(int micro_batch) {
    graph::Network& network = network_of(micro_batch);
    graph::Observer nobody;
    Progress progress(boundary_, kernels_of(log_, nobody));
    enter(log_, Phase::communication);
    wait_until([&] { return boundary_.has_gradients(); });
    boundary_.take_gradients(network);
    enter(log_, Phase::backward);
    set_number(device_, network, &device::StepScalars::micro_batch,
               static_cast<std::uint32_t>(micro_batch));
    if (micro_batch + 1 == layout().micro_batches) {
        LastProgress last_progress(progress, buckets_);
        buckets_.ready(store_.ranges().size());  // the status
        network.backward(last_progress);
    } else {
        network.backward(progress);
        sum_.add(micro_batch);
    }
    enter(log_, Phase::communication);
    boundary_.send_gradients(network);
}

/// The step is taken on all stages or on none.
void PipelineStep::Worker::agree() {
    constexpr double good = 0, not_finite = 1, failed = 2;
    graph::Network& network = first_network();
    device_.check_finite(checked_, network.step_scalars());
    reducer_.check();
    double worst = good;
    if (network.read_step_numbers().finite == 0) worst = not_finite;
    if (std::isinf(store_.status())) worst = failed;
    const Stopwatch watch;
    share_.group.all_reduce_max(std::span(&worst, 1));
    accounting_.wait_seconds += watch.seconds();
    has_failed_ = worst == failed;
    if (worst == good) return;
    reducer_.leave_out_step();
    set_number(device_, network, &device::StepScalars::finite, std::uint32_t{0});
}

template <typename Done>
void PipelineStep::Worker::wait_until(Done is_done) {
    if (is_done()) return;
    const Stopwatch watch;
    share_.group.wait_until([&] {
        boundary_.test();
        return is_done();
    });
    accounting_.wait_seconds += watch.seconds();
}

double PipelineStep::Worker::communication_seconds() const {
    const double of_parts =
        share_.exchange == nullptr ? 0 : share_.exchange->accounting().wait_seconds;
    return host_seconds(buckets_.accounting()) + accounting_.wait_seconds + of_parts;
}

StepResults PipelineStep::Worker::read() {
    reducer_.check();
    buckets_.read_times();
    const device::StepScalars numbers = first_network().read_step_numbers();
    set_number(device_, first_network(), &device::StepScalars::loss_sum, 0.0);
    std::array<double, 2> sums{numbers.loss_sum,
                               static_cast<double>(std::exchange(unread_samples_, 0))};
    enter(log_, Phase::communication);
    share_.group.all_reduce_sum(sums);
    enter(log_, Phase::other);
    StepResults results;
    results.loss_sum = sums[0];
    results.samples = static_cast<std::int64_t>(sums[1]);
    results.skipped_steps = numbers.skipped_steps;
    results.has_failed = has_failed_;
    results.loss_scale = numbers.loss_scale / loss_scale_.loss_weight;
    results.has_diverged = has_diverged(numbers, skipped_before_, loss_scale_);
    skipped_before_ = numbers.skipped_steps;
    return results;
}

PipelineStep::PipelineStep(const PipelineSetup& setup) : worker_(std::make_unique<Worker>(setup)) {}

PipelineStep::~PipelineStep() = default;

void PipelineStep::run_batch(const data::Batch* batch, double learning_rate, bool has_failed) {
    worker_->run(batch, learning_rate, has_failed);
}

StepResults PipelineStep::read() {
    return worker_->read();
}

std::int64_t PipelineStep::steps_between_readings() const {
    return worker_->steps_between_readings();
}

const comm::GradientBuckets& PipelineStep::buckets() const {
    return worker_->buckets();
}

double PipelineStep::communication_seconds() const {
    return worker_->communication_seconds();
}

void PipelineStep::save(Snapshot& to) {
    worker_->save(to);
}

void PipelineStep::restore(const Snapshot& from) {
    worker_->restore(from);
}

MessageAccounting PipelineStep::messages() const {
    return worker_->messages();
}

}  // namespace hpcai::training
