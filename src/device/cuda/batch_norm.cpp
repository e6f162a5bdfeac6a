// SPDX-License-Identifier: Apache-2.0
#include "kernels/batch_norm.hpp"

#include <algorithm>

#include "context.hpp"
#include "whole_batch_norm.hpp"

namespace hpcai::device::cuda {
namespace {

/// Sums two numbers per channel of a BatchNorm over the ranks that share its statistics. The host
/// computes the sums and waits for the stream and the other ranks, so this work cannot be captured
/// as a CUDA graph. With one rank, the object needs no memory and must not be asked for sums.
class SyncBatchNormSums {
public:
    /// `reducer` sums over `ranks` ranks if there are several, and must outlive the object.
    SyncBatchNormSums(SyncBatchNormReducer* reducer, std::int64_t ranks, std::int64_t channels,
                      const Context& context)
        : reducer_(reducer),
          ranks_(static_cast<int>(ranks)),
          channels_(static_cast<std::size_t>(channels)),
          context_(context) {
        const int reducer_ranks = reducer == nullptr ? 1 : reducer->ranks();
        ensure(ranks == 1 || ranks == reducer_ranks,
               "the statistics span {} ranks, but the reducer sums over {}", ranks, reducer_ranks);
    }

    int ranks() const { return ranks_; }
    /// Bytes of the device memory that bind() takes, which is 16-byte aligned.
    std::size_t bytes() const {
        return ranks_ == 1 ? 0 : value_bytes() + 3 * channels_ * sizeof(float);
    }
    void bind(void* memory) {
        if (ranks_ == 1) return;
        values_ = static_cast<double*>(memory);
        coefficients_ = reinterpret_cast<float*>(values_ + 2 * channels_);
        host_ = PinnedBytes(value_bytes() + 2 * channels_ * sizeof(float));
    }

    double* values() const { return values_; }             // (2, C)
    float* coefficients() const { return coefficients_; }  // (3, C), scratch for the caller

    /// Sums values() over the ranks. Throws as SyncBatchNormReducer does, and Error(internal) when
    /// earlier work has failed.
    void sum_values() const {
        download(host_.data(), values_, value_bytes());
        sum_and_upload();
    }
    /// Writes the sums over ranks of `first` and `second`, (C) each, to values(). Throws like
    /// sum_values().
    void sum(const float* first, const float* second) const {
        auto* const floats = reinterpret_cast<float*>(host_.data() + value_bytes());
        download(floats, first, channels_ * sizeof(float));
        download(floats + channels_, second, channels_ * sizeof(float));
        std::copy_n(floats, 2 * channels_, host_values().begin());
        sum_and_upload();
    }

private:
    std::size_t value_bytes() const { return 2 * channels_ * sizeof(double); }
    std::span<double> host_values() const {
        return {reinterpret_cast<double*>(host_.data()), 2 * channels_};
    }
    void download(void* to, const void* from, std::size_t bytes) const {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, context_.stream),
              "reading statistics");
        check(cudaStreamSynchronize(context_.stream), "reading statistics");
    }
    void sum_and_upload() const {
        reducer_->sum(host_values());
        check(cudaMemcpyAsync(values_, host_.data(), value_bytes(), cudaMemcpyHostToDevice,
                              context_.stream),
              "writing statistics");
    }

    SyncBatchNormReducer* reducer_;
    int ranks_;
    std::size_t channels_;
    const Context& context_;
    double* values_ = nullptr;
    float* coefficients_ = nullptr;
    PinnedBytes host_;
};

/// The f32 vectors of the channels for kernels: those of KernelTensors or, if stored_channels()
/// adds padding, copies that are padded with zeros, so that the padding channels stay 0.
class ChannelVectors {
public:
    enum Which { gamma, beta, running_mean, running_variance, gamma_gradient, beta_gradient };

    ChannelVectors(std::int64_t channels, const Context& context)
        : context_(context),
          bytes_(static_cast<std::size_t>(channels) * sizeof(float)),
          stored_bytes_(static_cast<std::size_t>(stored_channels(channels)) * sizeof(float)) {}

    /// Bytes of the copies; 0 if the kernels use the vectors of KernelTensors.
    std::size_t copy_bytes() const { return is_copy() ? kVectors * stored_bytes_ : 0; }

    void bind(const KernelTensors& tensors, void* copies) {
        original_ = {tensors.parameters[0], tensors.parameters[1], tensors.running_mean,
                     tensors.running_variance};
        if (!tensors.parameter_gradients.empty()) {
            original_[gamma_gradient] = tensors.parameter_gradients[0];
            original_[beta_gradient] = tensors.parameter_gradients[1];
        }
        active_ = original_;
        if (!is_copy()) return;
        for (std::size_t i = 0; i < kVectors; ++i) {
            active_[i] = static_cast<float*>(copies) + i * stored_bytes_ / sizeof(float);
        }
    }

    float* operator[](Which which) const { return active_[which]; }

    /// Enqueues copies of the vectors that the kernels read.
    void load() const {
        if (!is_copy()) return;
        check(cudaMemsetAsync(active_[0], 0, copy_bytes(), context_.stream), "padding channels");
        for (const Which which : {gamma, beta, running_mean, running_variance}) {
            copy(active_[which], original_[which]);
        }
    }
    /// Enqueues copies of the vectors that the kernels have written.
    void store(std::initializer_list<Which> written) const {
        if (!is_copy()) return;
        for (const Which which : written) copy(original_[which], active_[which]);
    }

private:
    static constexpr std::size_t kVectors = 6;

    bool is_copy() const { return bytes_ != stored_bytes_; }
    void copy(float* to, const float* from) const {
        check(cudaMemcpyAsync(to, from, bytes_, cudaMemcpyDeviceToDevice, context_.stream),
              "copying channels");
    }

    const Context& context_;
    std::size_t bytes_, stored_bytes_;
    std::array<float*, kVectors> original_{}, active_{};
};

/// Saved for the backward pass: the statistics of each span (the samples that are normalized
/// together) and, with an addition, a mask with one bit per element, set where y > 0.
class BatchNormKernel final : public OperationKernel<ops::BatchNorm, Context> {
public:
    BatchNormKernel(const ops::BatchNorm& op, const KernelOptions& options, const Context& context)
        : OperationKernel(op, options, context),
          vectors_(op.input[3], context),
          rank_sums_(options.sync_batch_norm_reducer, trains() ? ranks_of(op) : 1,
                     stored_channels(op.input[3]), context) {
        ensure(!op.add || op.relu, "a BatchNorm with an addition requires a ReLU");
        const std::int64_t samples = op.input[0], pixels = op.input[1] * op.input[2];
        const bool has_spans = trains() && op.statistics_samples > 0 && rank_sums_.ranks() == 1;
        shape_ = {.dtype = options.compute,
                  .spans = has_spans ? samples / op.statistics_samples : 1,
                  .pixels = (has_spans ? op.statistics_samples : samples) * pixels,
                  .channels = stored_channels(op.input[3])};
        ensure(!op.from_sums || (trains() && rank_sums_.ranks() == 1 && shape_.spans == 1 &&
                                 vectors_.copy_bytes() == 0),
               "statistics from sums require training, one span, one rank and no padding channels");
    }

    KernelMemory memory() const override {
        const std::size_t scratch_bytes = rank_sums_offset() + rank_sums_.bytes();
        if (!trains()) return {.workspace_bytes = scratch_bytes + 2 * statistic_bytes()};
        const std::size_t mask_bytes = op_.add ? batch_norm_mask_bytes(shape_) : 0;
        return {.saved_bytes = 4 * statistic_bytes() + mask_bytes,
                .workspace_bytes = scratch_bytes};
    }
    /// The mask or x gives the sign of the output, so the output is not read.
    ops::BackwardReads backward_reads() const override {
        return {.inputs = true, .output_gradients = 2};
    }

    void bind(const KernelTensors& tensors) override {
        ensure(!trains() || !op_.add || tensors.input_gradients[1] != nullptr,
               "the kernel has no buffer for the gradient of the residual");
        OperationKernel::bind(tensors);
        auto* copies = static_cast<std::byte*>(tensors.workspace) + copies_offset();
        vectors_.bind(tensors, copies);
        rank_sums_.bind(static_cast<std::byte*>(tensors.workspace) + rank_sums_offset());
        // An inference kernel saves nothing, so its scale and shift are in the workspace.
        auto* kept =
            trains() ? static_cast<std::byte*>(tensors.saved) : copies + vectors_.copy_bytes();
        const auto statistic = [&](std::size_t index) {
            return array_at(kept, index, statistic_bytes());
        };
        statistics_ = {.scale = statistic(0), .shift = statistic(1)};
        if (!trains()) return;
        statistics_.mean = statistic(2);
        statistics_.inverse_deviation = statistic(3);
        if (op_.add) mask_ = reinterpret_cast<std::uint32_t*>(statistic(4));
    }

private:
    void forward() override {
        vectors_.load();
        if (trains()) {
            compute_statistics();
            vectors_.store({ChannelVectors::running_mean, ChannelVectors::running_variance});
        } else {
            kernels::batch_norm_running_statistics(shape_.channels, parameters(), statistics_,
                                                   context_.stream);
        }
        kernels::batch_norm_apply(shape_,
                                  {.x = tensors_.inputs[0],
                                   .scale = statistics_.scale,
                                   .shift = statistics_.shift,
                                   .residual = op_.add ? tensors_.inputs[1] : nullptr,
                                   .y = tensors_.output,
                                   .mask = mask_,
                                   .relu = op_.relu},
                                  context_.stream);
    }
    void input_gradient() override {
        vectors_.load();
        kernels::BatchNormGradientArguments arguments{
            .x = tensors_.inputs[0],
            .dy0 = output_gradient(),
            .dy1 = added_output_gradient(),
            .gamma = vectors_[ChannelVectors::gamma],
            .statistics = statistics_,
            .relu = op_.relu,
            .mask = mask_,
            .residual_gradient = op_.add ? tensors_.input_gradients[1] : nullptr,
            .dx = tensors_.input_gradients[0],
            .gamma_gradient = vectors_[ChannelVectors::gamma_gradient],
            .beta_gradient = vectors_[ChannelVectors::beta_gradient],
            .workspace = tensors_.workspace};
        kernels::batch_norm_gradient_sums(shape_, arguments, context_.stream);
        vectors_.store({ChannelVectors::gamma_gradient, ChannelVectors::beta_gradient});
        if (rank_sums_.ranks() > 1) {
            rank_sums_.sum(arguments.gamma_gradient, arguments.beta_gradient);
            kernels::batch_norm_gradient_coefficients(
                shape_,
                {rank_sums_.values(), rank_sums_.ranks(), arguments.gamma, statistics_,
                 rank_sums_.coefficients()},
                context_.stream);
            arguments.coefficients = rank_sums_.coefficients();
        }
        if (arguments.dx == nullptr) return;
        kernels::batch_norm_gradient_apply(shape_, arguments, context_.stream);
    }

    /// The number of ranks whose samples share statistics.
    static std::int64_t ranks_of(const ops::BatchNorm& op) {
        return std::max<std::int64_t>(1, op.statistics_samples / op.input[0]);
    }
    std::size_t statistic_bytes() const { return array_bytes(shape_.spans * shape_.channels); }
    std::size_t copies_offset() const {
        return rounded_up(trains() ? batch_norm_workspace_bytes(shape_) : 0);
    }
    std::size_t rank_sums_offset() const {
        return rounded_up(copies_offset() + vectors_.copy_bytes());
    }

    kernels::BatchNormParameters parameters() const {
        return {.gamma = vectors_[ChannelVectors::gamma],
                .beta = vectors_[ChannelVectors::beta],
                .running_mean = vectors_[ChannelVectors::running_mean],
                .running_variance = vectors_[ChannelVectors::running_variance],
                .epsilon = op_.epsilon,
                .momentum = op_.momentum};
    }

    void compute_statistics() const {
        if (rank_sums_.ranks() == 1) {
            return compute_batch_statistics(
                op_, shape_, {tensors_.inputs[0], parameters(), statistics_, tensors_.workspace},
                context_.stream);
        }
        kernels::batch_norm_moments(
            shape_, {tensors_.inputs[0], rank_sums_.values(), tensors_.workspace}, context_.stream);
        rank_sums_.sum_values();
        kernels::batch_norm_statistics_from_moments(
            shape_, {rank_sums_.values(), rank_sums_.ranks(), parameters(), statistics_},
            context_.stream);
    }

    ChannelVectors vectors_;
    SyncBatchNormSums rank_sums_;
    kernels::BatchNormShape shape_;
    kernels::BatchNormStatistics statistics_;
    std::uint32_t* mask_ = nullptr;
};

}  // namespace

KernelPtr build(const ops::BatchNorm& op, const KernelOptions& options, const Context& context) {
    if (op.frozen) return build_frozen_norm(op, options, context);
    return std::make_unique<BatchNormKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
