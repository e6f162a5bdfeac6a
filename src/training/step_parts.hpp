// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/training/snapshot.hpp>
#include <hpcai/training/step_log.hpp>

/// What a step is made of, whoever runs it.
namespace hpcai::training {

std::vector<comm::Range> ranges_and_status(const graph::ParameterStore& store);

comm::BucketOptions bucket_options(const config::CommunicationConfig& communication);

/// Scales are of row losses, of which the whole batch of the model is summed: so the share of a row
/// in the mean belongs to them, and gradients need no later division where the loss is not scaled.
device::LossScalePolicy plan_loss_scale(const config::TrainingConfig& training,
                                        tensor::DType compute);

/// Tells the buckets which gradients a step of the last backward pass has finished, and lets sums
/// advance.
void notify_buckets(const graph::Step& step, comm::GradientBuckets& buckets);

/// In which the host did nothing but sum.
inline double host_seconds(const comm::BucketAccounting& sums) {
    return sums.exposed_seconds + sums.interleaved_seconds;
}

/// Tells a log, where there is one, of the sums.
void watch_sums(StepLog* log, comm::GradientBuckets& buckets);

/// Who is to see the kernels of this step, for the trace of a log; else `nobody`.
graph::Observer& kernels_of(StepLog* log, graph::Observer& nobody);

/// Writes the first loss scale to the network's numbers.
void start_loss_scale(const config::TrainingConfig& training, const device::LossScalePolicy& policy,
                      device::Device& device, graph::Network& network);

/// Gradients, with the status, that must be finite. A number that is not finite in one logit of a
/// classifier shows in its last bias's gradient, a sum over all samples of all ranks; an overflow
/// of fp16 may be anywhere, as may what is wrong in one of a detector's losses. The status is
/// infinite where a rank has failed, so that no rank takes such a step.
std::span<const float> checked_gradients(const graph::Network& network,
                                         graph::ParameterStore& store);

/// After a reading of `numbers`, of which `skipped_before` steps were skipped at the reading
/// before: whether no smaller loss scale can help.
bool has_diverged(const device::StepScalars& numbers, std::uint32_t skipped_before,
                  const device::LossScalePolicy& policy);

/// What StepRunner::save and restore have of a network's numbers, and of what the sums of gradients
/// feed back to the next step's.
void save_numbers(const graph::Network& network, Snapshot& to);
/// Returns them.
device::StepScalars restore_numbers(const Snapshot& from, device::Device& device,
                                    graph::Network& network);
void save_residuals(comm::GradientReducer& reducer, const comm::GradientBuckets& buckets,
                    graph::ParameterStore& store, Snapshot& to);
void restore_residuals(const Snapshot& from, comm::GradientReducer& reducer,
                       const comm::GradientBuckets& buckets, graph::ParameterStore& store);

/// Enqueues a change of one of the network's numbers.
template <typename T>
void set_number(device::Device& device, graph::Network& network, T device::StepScalars::*number,
                T value) {
    device.enqueue_upload(&(network.step_scalars()->*number), std::as_bytes(std::span(&value, 1)));
}

}  // namespace hpcai::training
