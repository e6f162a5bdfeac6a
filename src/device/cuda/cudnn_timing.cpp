// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/core.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/tensor/half.hpp>

#include "cudnn_choice.hpp"
#include "plan_cache.hpp"

namespace hpcai::device::cuda {
namespace {

/// Limits of the trials for each graph. cuDNN's heuristics list good plans first: for 66 graphs of
/// ResNet-50 on an H200, the fastest of the first twenty plans take 0.05 % longer in total than
/// the fastest of all plans. Trials of all plans take a minute longer for these graphs, because
/// compiling a plan can take seconds.
constexpr std::size_t kMaxTrials = 20;
constexpr double kMaxSeconds = 0.5;  // afterwards trials end once the results of two plans agree
/// Once two plans agree, a plan that takes more than this times the best time is not chosen.
constexpr double kMaxSlowdown = 1.5;

struct Access {
    std::vector<Operand> reads, writes;
};

const Access& access_of(ConvolutionPass pass) {
    using O = Operand;
    static const std::array<Access, kConvolutionPasses> kAccess{{
        {{O::image, O::filters}, {O::output}},
        {{O::image, O::filters}, {O::output, O::sum, O::square_sum}},
        {{O::output, O::filters}, {O::image}},
        {{O::image, O::output}, {O::gradient}},
    }};
    return kAccess.at(static_cast<std::size_t>(pass));
}

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
/// bits. f16 and bf16 numbers are odd multiples of 1/16, which are exact in both types; their mean
/// is 0, so that sums over a large image stay finite in fp16.
std::uint32_t random_bits(DType dtype, std::uint32_t& state) {
    state = state * 1664525U + 1013904223U;
    if (dtype == DType::f32) {
        return std::bit_cast<std::uint32_t>(static_cast<float>(state >> 8) / 8388608 - 1);
    }
    const auto value = static_cast<float>(2 * static_cast<int>(state >> 28) - 15) / 16;
    return dtype == DType::bf16 ? tensor::to_bf16(value) : tensor::to_f16(value);
}

/// Random numbers to fill an operand, with repetitions. Their number has no common factor with
/// image sizes, so that the channels of different pixels differ.
std::vector<std::byte> pattern(DType dtype, std::uint32_t seed) {
    constexpr std::size_t kElements = 262139;  // a prime
    std::vector<std::byte> bytes(kElements * size_of(dtype));
    for (std::size_t i = 0; i < kElements; ++i) {
        const std::uint32_t bits = random_bits(dtype, seed);
        std::memcpy(bytes.data() + i * size_of(dtype), &bits, size_of(dtype));
    }
    return bytes;
}

/// Pieces spread over a buffer. Only these parts of results are compared, as buffers are large.
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

/// The largest difference between the results of two plans that counts as agreement: |a - b| / |b|
/// in the Euclidean norm. Both results are rounded once; the relative error of tf32 operands is
/// at most 2^-10.
double agreement_bound(const ConvolutionShape& shape) {
    if (shape.dtype == DType::bf16) return 1.0 / 128;
    if (shape.dtype == DType::f16 || shape.tf32) return 1.0 / 512;
    return 1e-5;
}

struct Trial {
    int plan = -1;
    double seconds = 0;         // median, or the only time
    std::optional<int> result;  // index in PlanTimer::distinct_results_; none: not compared
};

/// Times finalized plans of a graph on random operands and compares their results.
class PlanTimer {
public:
    PlanTimer(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context)
        : shape_(shape), access_(access_of(pass)), stream_(context.stream) {
        for (const Operand operand : access_.reads) allocate(operand);
        for (const Operand operand : access_.writes) allocate(operand);
        if (!ready_) return;
        for (const Operand operand : access_.reads) fill(operand);
    }

    /// False when the device has too little free memory for the operands.
    bool ready() const { return ready_; }

    /// Runs a finalized plan. A plan that takes more than `max_seconds` is timed once and not
    /// compared. Returns nothing if the plan fails or its results are not finite. Throws if the
    /// device is unusable afterwards.
    std::optional<Trial> run(const ConvolutionPlans& plans, int plan, double max_seconds) {
        constexpr int kRepeats = 5;
        try {
            const DeviceBytes workspace(plans.workspace_bytes(plan));
            fill_results_with_nan();
            plans.execute(plan, operands_, workspace.data());  // may load code, so not timed
            std::array<double, kRepeats> seconds{time_once(plans, plan, workspace.data())};
            if (seconds[0] > max_seconds) return Trial{plan, seconds[0], {}};
            const auto result = result_index();
            if (!result) return std::nullopt;
            for (double& repeat : std::span(seconds).subspan(1)) {
                repeat = time_once(plans, plan, workspace.data());
            }
            std::nth_element(seconds.begin(), seconds.begin() + kRepeats / 2, seconds.end());
            return Trial{plan, seconds[kRepeats / 2], result};
        } catch (const std::exception&) {
            rethrow_fault();
            return std::nullopt;  // the plan does not run or does not fit in memory
        }
    }

private:
    using Samples = std::vector<std::vector<std::byte>>;  // one per operand that the pass writes

    void allocate(Operand operand) {
        if (!ready_) return;
        try {
            buffers_.emplace_back(bytes_of(operand, shape_));
            operands_[operand] = buffers_.back().data();
        } catch (const Error&) {
            ready_ = false;
        }
    }

    void fill(Operand operand) {
        const auto bytes =
            pattern(type_of(operand, shape_.dtype), static_cast<std::uint32_t>(operand) + 1);
        auto* to = static_cast<std::byte*>(operands_[operand]);
        const std::size_t all = bytes_of(operand, shape_);
        for (std::size_t at = 0; at < all; at += bytes.size()) {
            check(cudaMemcpyAsync(to + at, bytes.data(), std::min(all - at, bytes.size()),
                                  cudaMemcpyHostToDevice, stream_),
                  "filling an operand");
        }
        check(cudaStreamSynchronize(stream_), "filling an operand");
    }

    /// Fills the results with NaN (all bits 1), to detect elements that a plan does not write.
    void fill_results_with_nan() const {
        for (const Operand operand : access_.writes) {
            check(cudaMemsetAsync(operands_[operand], 255, bytes_of(operand, shape_), stream_),
                  "filling a result");
        }
    }

    Samples results() const {
        Samples samples;
        for (const Operand operand : access_.writes) {
            const Sample sample(bytes_of(operand, shape_));
            auto& bytes = samples.emplace_back(sample.pieces * sample.piece_bytes);
            check(cudaMemcpy2DAsync(bytes.data(), sample.piece_bytes, operands_[operand],
                                    sample.pitch, sample.piece_bytes, sample.pieces,
                                    cudaMemcpyDeviceToHost, stream_),
                  "reading a result");
        }
        check(cudaStreamSynchronize(stream_), "reading a result");
        return samples;
    }

    bool agrees(const Samples& a, const Samples& b) const {
        const auto& writes = access_.writes;
        for (std::size_t i = 0; i < writes.size(); ++i) {
            const DType dtype = type_of(writes[i], shape_.dtype);
            if (!(relative_difference(dtype, a[i], b[i]) <= agreement_bound(shape_))) return false;
        }
        return true;
    }

    /// Returns the index in distinct_results_ of the result, which is added if it agrees with none
    /// of them; returns nothing if the result is not finite.
    std::optional<int> result_index() {
        Samples samples = results();
        const auto found = std::ranges::find_if(
            distinct_results_, [&](const Samples& other) { return agrees(samples, other); });
        const auto index = static_cast<int>(found - distinct_results_.begin());
        if (found != distinct_results_.end()) return index;
        if (!agrees(samples, samples)) return std::nullopt;  // a number is not finite
        distinct_results_.push_back(std::move(samples));
        return index;
    }

    double time_once(const ConvolutionPlans& plans, int plan, void* workspace) {
        constexpr int kLaunches = 4;  // because launching a small plan takes as long as running it
        start_.record(stream_);
        for (int i = 0; i < kLaunches; ++i) plans.execute(plan, operands_, workspace);
        stop_.record(stream_);
        return stop_.seconds_since(start_) / kLaunches;
    }

    const ConvolutionShape shape_;
    const Access& access_;
    cudaStream_t stream_;
    std::vector<DeviceBytes> buffers_;
    Operands operands_;
    bool ready_ = true;
    std::vector<Samples> distinct_results_;  // no two agree
    TimedEvent start_, stop_;
};

/// The result on which most plans agree; in a tie, the first.
struct Majority {
    std::optional<int> result;
    std::ptrdiff_t plans = 0;
};

Majority find_majority(const std::vector<Trial>& trials) {
    Majority best;
    for (const Trial& trial : trials) {
        if (!trial.result) continue;
        const auto plans = std::ranges::count(trials, trial.result, &Trial::result);
        if (plans > best.plans) best = {trial.result, plans};
    }
    return best;
}

/// The fastest plan with the result of the majority; plan -1 if no plan was compared.
Trial fastest(const std::vector<Trial>& trials, const Majority& majority) {
    Trial best{.seconds = std::numeric_limits<double>::infinity()};
    for (const Trial& trial : trials) {
        const bool agrees = trial.result && trial.result == majority.result;
        if (agrees && trial.seconds < best.seconds) best = trial;
    }
    return best;
}

/// Tries plans in order, each once, except those in `excluded`, within the limits above. `run`
/// takes a plan and a limit in seconds, above which it compares no results.
template <typename Run>
std::vector<Trial> run_trials(ConvolutionPlans& plans, std::set<std::string> excluded,
                              const Run& run) {
    const Stopwatch watch;
    std::vector<Trial> trials;
    std::size_t runs = 0;
    for (int plan = 0; plan < plans.count() && runs < kMaxTrials; ++plan) {
        const Majority majority = find_majority(trials);
        const Trial best = fastest(trials, majority);
        // Until two plans agree, the fastest may be wrong, so there is no limit of time.
        if (majority.plans > 1 && watch.seconds() > kMaxSeconds) break;
        if (!excluded.insert(plans.name(plan)).second) continue;  // barred, or already tried
        if (!plans.finalize(plan) || plans.workspace_bytes(plan) > kMaxPlanWorkspaceBytes) continue;
        ++runs;
        const double max_seconds = majority.plans > 1 ? kMaxSlowdown * best.seconds
                                                      : std::numeric_limits<double>::infinity();
        if (const auto trial = run(plan, max_seconds)) trials.push_back(*trial);
    }
    return trials;
}

}  // namespace

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

int find_fastest(ConvolutionPlans& plans, const ConvolutionShape& shape, ConvolutionPass pass,
                 const Context& context) {
    PlanTimer timer(shape, pass, context);
    if (!timer.ready()) return -1;
    const std::string key = plan_key(shape, pass);
    const auto run = [&](int plan, double max_seconds) {
        try {
            return timer.run(plans, plan, max_seconds);
        } catch (const std::exception& error) {
            context.plans->bar(key, plans.name(plan));
            context.plans->save();
            throw Error(ExitCode::internal,
                        fmt::format("cuDNN plan {} for {} made the GPU unusable; later runs "
                                    "with this device.plan_cache do not use the plan: {}",
                                    plans.name(plan), key, error.what()));
        }
    };
    const std::vector<Trial> trials = run_trials(plans, context.plans->barred(key), run);
    const Majority majority = find_majority(trials);
    std::vector<PlanCache::Timing> timings;
    for (const auto& [plan, seconds, result] : trials) {
        const auto agrees = result ? std::optional(result == majority.result) : std::nullopt;
        timings.push_back({plans.name(plan), seconds, plans.workspace_bytes(plan), agrees});
    }
    context.plans->insert_timings(key, std::move(timings));
    return fastest(trials, majority).plan;
}

}  // namespace hpcai::device::cuda
