// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <hpcai/base/error.hpp>
#include <hpcai/tensor/half.hpp>

#include "context.hpp"
#include "cudnn_choice.hpp"

namespace hpcai::device::cuda {
namespace {

double element(DType dtype, std::span<const std::byte> from, std::size_t index) {
    if (dtype == DType::f32) {
        float value = 0;
        std::memcpy(&value, from.data() + 4 * index, 4);
        return value;
    }
    std::uint16_t bits = 0;
    std::memcpy(&bits, from.data() + 2 * index, 2);
    return dtype == DType::bf16 ? tensor::from_bf16(bits) : tensor::from_f16(bits);
}

/// Bits of a random number in [-1, 1). f32 numbers use all 24 bits, to detect a plan that drops
/// some. f16 and bf16 numbers are odd multiples of 1/16, which are exact; their mean is 0, so that
/// sums over a large image stay finite in fp16.
std::uint32_t random_bits(DType dtype, std::uint32_t& state) {
    state = state * 1664525U + 1013904223U;
    if (dtype == DType::f32) {
        return std::bit_cast<std::uint32_t>(static_cast<float>(state >> 8) / 8388608 - 1);
    }
    const auto value = static_cast<float>(2 * static_cast<int>(state >> 28) - 15) / 16;
    return dtype == DType::bf16 ? tensor::to_bf16(value) : tensor::to_f16(value);
}

/// A pattern whose length has no common factor with image sizes, so that the channels of different
/// pixels differ.
std::vector<std::byte> pattern(DType dtype, std::uint32_t seed) {
    constexpr std::size_t kElements = 262139;  // a prime
    std::vector<std::byte> bytes(kElements * size_of(dtype));
    for (std::size_t i = 0; i < kElements; ++i) {
        const std::uint32_t bits = random_bits(dtype, seed);
        std::memcpy(bytes.data() + i * size_of(dtype), &bits, size_of(dtype));
    }
    return bytes;
}

/// Pieces spread over a buffer. Results are compared there only, because buffers are large.
struct Sample {
    static constexpr std::size_t kPieces = 256, kPieceBytes = 1024;
    std::size_t pieces = 1, piece_bytes = 0, pitch = 0;  // pitch: bytes from piece to piece

    explicit Sample(std::size_t bytes) : piece_bytes(bytes), pitch(bytes) {
        if (bytes <= kPieces * kPieceBytes) return;
        pieces = kPieces;
        piece_bytes = kPieceBytes;
        pitch = (bytes - kPieceBytes) / (kPieces - 1) / 16 * 16;
    }
};

}  // namespace

double agreement_bound(const ConvolutionShape& shape) {
    if (shape.dtype == DType::bf16) return 1.0 / 128;
    if (shape.dtype == DType::f16 || shape.tf32) return 1.0 / 512;
    return 1e-5;
}

double relative_difference(DType dtype, std::span<const std::byte> a,
                           std::span<const std::byte> b) {
    double difference = 0, norm = 0;  // squares of Euclidean norms
    for (std::size_t i = 0; i < a.size() / size_of(dtype); ++i) {
        const double x = element(dtype, a, i), y = element(dtype, b, i);
        difference += (x - y) * (x - y);
        norm += y * y;
    }
    if (!std::isfinite(difference) || !std::isfinite(norm)) {
        return std::numeric_limits<double>::infinity();
    }
    return difference == 0 ? 0 : std::sqrt(difference / norm);
}

struct PlanTimer::State {
    using Samples = std::vector<std::vector<std::byte>>;  // one per operand that the pass writes

    ConvolutionShape shape;
    ConvolutionPass pass;
    cudaStream_t stream;
    std::vector<DeviceBytes> buffers;
    Operands operands;
    bool ready = true;
    std::vector<Samples> distinct_results;  // no two agree
    TimedEvent start, stop;

    void allocate(Operand operand) {
        if (!ready) return;
        try {
            buffers.emplace_back(bytes_of(operand, shape));
            operands[operand] = buffers.back().data();
        } catch (const Error&) {
            ready = false;
        }
    }

    void fill(Operand operand) {
        const auto bytes =
            pattern(type_of(operand, shape.dtype), static_cast<std::uint32_t>(operand) + 1);
        auto* to = static_cast<std::byte*>(operands[operand]);
        for (std::size_t at = 0, remaining = bytes_of(operand, shape); remaining > 0;) {
            const std::size_t size = std::min(remaining, bytes.size());
            check(cudaMemcpyAsync(to + at, bytes.data(), size, cudaMemcpyHostToDevice, stream),
                  "filling an operand");
            at += size;
            remaining -= size;
        }
        check(cudaStreamSynchronize(stream), "filling an operand");
    }

    /// Fills the results with NaN (all bits 1), to detect elements that a plan does not write.
    void fill_results_with_nan() const {
        for (const Operand operand : operands_written(pass)) {
            check(cudaMemsetAsync(operands[operand], 255, bytes_of(operand, shape), stream),
                  "filling a result");
        }
    }

    Samples results() const {
        Samples samples;
        for (const Operand operand : operands_written(pass)) {
            const Sample sample(bytes_of(operand, shape));
            auto& bytes = samples.emplace_back(sample.pieces * sample.piece_bytes);
            check(cudaMemcpy2DAsync(bytes.data(), sample.piece_bytes, operands[operand],
                                    sample.pitch, sample.piece_bytes, sample.pieces,
                                    cudaMemcpyDeviceToHost, stream),
                  "reading a result");
        }
        check(cudaStreamSynchronize(stream), "reading a result");
        return samples;
    }

    bool agrees(const Samples& a, const Samples& b) const {
        const auto writes = operands_written(pass);
        for (std::size_t i = 0; i < writes.size(); ++i) {
            const DType dtype = type_of(writes[i], shape.dtype);
            if (!(relative_difference(dtype, a[i], b[i]) <= agreement_bound(shape))) return false;
        }
        return true;
    }

    /// Returns the index in `distinct_results`, to which it adds a new result; none if not finite.
    std::optional<int> result_index() {
        Samples samples = results();
        const auto found = std::ranges::find_if(
            distinct_results, [&](const Samples& other) { return agrees(samples, other); });
        const auto number = static_cast<int>(found - distinct_results.begin());
        if (found != distinct_results.end()) return number;
        if (!agrees(samples, samples)) return std::nullopt;
        distinct_results.push_back(std::move(samples));
        return number;
    }

    double time_once(const ConvolutionPlans& plans, int plan, void* workspace) {
        constexpr int kLaunches = 4;  // because launching a small plan takes as long as running it
        start.record(stream);
        for (int i = 0; i < kLaunches; ++i) plans.execute(plan, operands, workspace);
        stop.record(stream);
        return stop.seconds_since(start) / kLaunches;
    }
};

PlanTimer::PlanTimer(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context)
    : state_(new State{.shape = shape, .pass = pass, .stream = context.stream}) {
    for (const Operand operand : operands_read(pass)) state_->allocate(operand);
    for (const Operand operand : operands_written(pass)) state_->allocate(operand);
    if (!state_->ready) return;
    for (const Operand operand : operands_read(pass)) state_->fill(operand);
}

PlanTimer::~PlanTimer() = default;

bool PlanTimer::ready() const {
    return state_->ready;
}

std::optional<PlanTimer::Trial> PlanTimer::run(const ConvolutionPlans& plans, int plan,
                                               double max_seconds) {
    constexpr int kRepeats = 5;
    try {
        const DeviceBytes workspace(plans.workspace_bytes(plan));
        state_->fill_results_with_nan();
        plans.execute(plan, state_->operands, workspace.data());  // may load code, so not timed
        std::array<double, kRepeats> seconds{state_->time_once(plans, plan, workspace.data())};
        if (seconds[0] > max_seconds) return Trial{seconds[0], {}};
        const auto result = state_->result_index();
        if (!result) return std::nullopt;
        for (double& repeat : std::span(seconds).subspan(1)) {
            repeat = state_->time_once(plans, plan, workspace.data());
        }
        std::nth_element(seconds.begin(), seconds.begin() + kRepeats / 2, seconds.end());
        return Trial{seconds[kRepeats / 2], result};
    } catch (const std::exception&) {
        rethrow_fault();
        return std::nullopt;  // the plan does not run or does not fit in memory
    }
}

}  // namespace hpcai::device::cuda
