// SPDX-License-Identifier: Apache-2.0
#include "step_parts.hpp"

#include <algorithm>
#include <limits>

#include <hpcai/comm/error_feedback.hpp>

namespace hpcai::training {
namespace {

// PyTorch's GradScaler starts here.
constexpr float kFirstDynamicScale = 65536;
constexpr float kLargestDynamicScale = 16777216;

constexpr const char* kNumbersName = "step_scalars";

/// Of each bucket, where sums are made and the reducer feeds something back.
template <typename Visit>
void for_each_residual(comm::GradientReducer& reducer, const comm::GradientBuckets& buckets,
                       graph::ParameterStore& store, const Visit& visit) {
    comm::ErrorFeedback* const feedback = comm::error_feedback_of(reducer);
    if (feedback == nullptr || reducer.size() == 1) return;
    std::size_t bucket = 0;
    for (const comm::Range& range : buckets.ranges()) {
        visit(*feedback, store.gradients_and_status().subspan(range.begin, range.count()),
              fmt::format("residual.{}", bucket++));
    }
}

float first_loss_scale(const config::TrainingConfig& training, bool is_dynamic) {
    if (is_dynamic) return kFirstDynamicScale;
    return training.loss_scale == 0 ? 1.0f : static_cast<float>(training.loss_scale);
}

/// Whether what is no number anywhere shows in the gradients of the last layer, too.
bool ends_with_softmax(const graph::Graph& graph) {
    return gives_softmax(graph.nodes().back().operation);
}

}  // namespace

std::vector<comm::Range> ranges_and_status(const graph::ParameterStore& store) {
    std::vector<comm::Range> ranges = store.ranges();
    ranges.push_back(store.status_range());
    return ranges;
}

comm::BucketOptions bucket_options(const config::CommunicationConfig& communication) {
    return {static_cast<std::size_t>(communication.bucket_mib * 1024 * 1024),
            communication.overlap};
}

device::LossScalePolicy plan_loss_scale(const config::TrainingConfig& training,
                                        tensor::DType compute) {
    device::LossScalePolicy policy;
    policy.loss_weight = 1.0f / static_cast<float>(training.batch_size);
    policy.dynamic = training.loss_scale == 0 && compute == tensor::DType::f16;
    policy.smallest = policy.loss_weight / 2;  // reached by an overflow of the unscaled loss only
    policy.largest = kLargestDynamicScale * policy.loss_weight;
    return policy;
}

void notify_buckets(const graph::Step& step, comm::GradientBuckets& buckets) {
    for (const graph::ParameterId parameter : step.final_gradients) {
        buckets.ready(static_cast<std::size_t>(parameter));
    }
    buckets.progress();
}

void watch_sums(StepLog* log, comm::GradientBuckets& buckets) {
    if (log == nullptr) return;
    buckets.tell([log, ranges = buckets.ranges()](std::size_t bucket, bool is_over) {
        log->sum(bucket, ranges[bucket].count() * sizeof(float), is_over);
    });
}

graph::Observer& kernels_of(StepLog* log, graph::Observer& nobody) {
    graph::Observer* const kernels = log == nullptr ? nullptr : log->kernels();
    return kernels == nullptr ? nobody : *kernels;
}

void start_loss_scale(const config::TrainingConfig& training, const device::LossScalePolicy& policy,
                      device::Device& device, graph::Network& network) {
    const float scale = first_loss_scale(training, policy.dynamic);
    network.set_loss_scale(scale * policy.loss_weight);
    set_number(device, network, &device::StepScalars::gradient_factor, 1 / scale);
}

std::span<const float> checked_gradients(const graph::Network& network,
                                         graph::ParameterStore& store) {
    const std::span<const float> all = store.gradients_and_status();
    const graph::Graph& graph = network.graph();
    if (network.compute() == tensor::DType::f16) return all;
    if (ends_with_softmax(graph)) return all.subspan(store.ranges().back().begin);
    return graph.outputs().empty() ? all : all.last(1);
}

void save_numbers(const graph::Network& network, Snapshot& to) {
    const device::StepScalars numbers = network.read_step_numbers();
    to.put_numbers(kNumbersName, {numbers.learning_rate, numbers.loss_scale,
                                  numbers.gradient_factor, static_cast<double>(numbers.good_steps),
                                  static_cast<double>(numbers.skipped_steps),
                                  static_cast<double>(numbers.taken_steps), numbers.loss_sum});
}

device::StepScalars restore_numbers(const Snapshot& from, device::Device& device,
                                    graph::Network& network) {
    const std::span<const double> stored = from.numbers(kNumbersName, 7);
    const auto counter = [&](double value) {
        return static_cast<std::uint32_t>(
            from.whole(kNumbersName, value, 0, std::numeric_limits<std::uint32_t>::max()));
    };
    device::StepScalars numbers;
    numbers.learning_rate = static_cast<float>(stored[0]);
    numbers.loss_scale = static_cast<float>(stored[1]);
    numbers.gradient_factor = static_cast<float>(stored[2]);
    if (!(numbers.loss_scale > 0) || !(numbers.gradient_factor > 0)) {
        from.refuse(kNumbersName, "expected a loss scale and a gradient factor above 0");
    }
    numbers.good_steps = counter(stored[3]);
    numbers.skipped_steps = counter(stored[4]);
    numbers.taken_steps = counter(stored[5]);
    numbers.loss_sum = stored[6];
    device.upload(network.step_scalars(), std::as_bytes(std::span(&numbers, 1)));
    return numbers;
}

void save_residuals(comm::GradientReducer& reducer, const comm::GradientBuckets& buckets,
                    graph::ParameterStore& store, Snapshot& to) {
    for_each_residual(reducer, buckets, store,
                      [&](comm::ErrorFeedback& feedback, auto values, const std::string& name) {
                          std::vector<float> residual = feedback.residual_of(values);
                          if (!residual.empty()) to.put(name, std::move(residual));
                      });
}

void restore_residuals(const Snapshot& from, comm::GradientReducer& reducer,
                       const comm::GradientBuckets& buckets, graph::ParameterStore& store) {
    for_each_residual(reducer, buckets, store,
                      [&](comm::ErrorFeedback& feedback, auto values, const std::string& name) {
                          const std::size_t size = feedback.residual_of(values).size();
                          if (size > 0) feedback.set_residual(values, from.floats(name, size));
                      });
}

bool has_diverged(const device::StepScalars& numbers, std::uint32_t skipped_before,
                  const device::LossScalePolicy& policy) {
    return numbers.skipped_steps > skipped_before &&
           (!policy.dynamic || numbers.loss_scale <= policy.smallest);
}

}  // namespace hpcai::training
