// SPDX-License-Identifier: Apache-2.0
#include "all_reduce_rates.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "timed_work.hpp"

namespace hpcai::speed {
namespace {

constexpr std::array<std::size_t, 5> kSizes{std::size_t{4} << 10, std::size_t{64} << 10,
                                            std::size_t{1} << 20, std::size_t{16} << 20,
                                            std::size_t{64} << 20};
constexpr int kFewestSums = 3;
constexpr int kMaxSums = 20;

class SumBench {
public:
    SumBench(RateMeter& meter, const SummingRanks& ranks, std::size_t bytes)
        : meter_(meter),
          ranks_(ranks),
          memory_(meter.device().allocate(bytes)),
          values_(static_cast<float*>(memory_->data()), bytes / sizeof(float)) {
        ranks.reducer.prepare(values_);
    }

    /// Seconds of one sum, from the moment when the last rank has come; of the slowest of all.
    double run() {
        meter_.device().synchronize();
        ranks_.group.barrier();
        const Stopwatch watch;
        ranks_.reducer.start_sum(values_)->wait();
        ranks_.reducer.check();
        meter_.device().synchronize();
        ranks_.reducer.end_step();
        return meter_.agree(watch.seconds());
    }

private:
    RateMeter& meter_;
    const SummingRanks& ranks_;
    std::unique_ptr<device::Memory> memory_;
    std::span<float> values_;
};

}  // namespace

std::vector<AllReduceRate> measure_all_reduce(RateMeter& meter, const SummingRanks& ranks,
                                              double seconds) {
    std::vector<std::unique_ptr<SumBench>> benches;
    for (const std::size_t bytes : kSizes) {
        benches.push_back(std::make_unique<SumBench>(meter, ranks, bytes));
    }
    const double each = seconds / static_cast<double>(kSizes.size());
    std::vector<AllReduceRate> rates;
    double before = 0;
    for (std::size_t index = 0; index < kSizes.size(); ++index) {
        // A size takes at most so many times as long as the one before it.
        const double growth = static_cast<double>(kSizes[index]) /
                              static_cast<double>(kSizes[index == 0 ? 0 : index - 1]);
        if (rates.size() >= 2 && growth * before > seconds) break;
        const double first = benches[index]->run();
        const int sums = static_cast<int>(
            std::clamp(each / std::max(first, 1e-9), double{kFewestSums}, double{kMaxSums}));
        before = median_seconds(sums, [&] { return benches[index]->run(); });
        const auto bytes = static_cast<double>(kSizes[index]);
        rates.push_back({ranks.scope, ranks.group.size(), bytes, before, bytes / before});
    }
    return rates;
}

AllReduceFit fit(const std::vector<AllReduceRate>& rates, const std::string& backend) {
    AllReduceFit line{.backend = backend,
                      .latency_seconds = {std::nullopt, "fewer than two sizes were measured"},
                      .bytes_per_second = {std::nullopt, "fewer than two sizes were measured"}};
    if (rates.empty()) return line;
    line.scope = rates.front().scope;
    line.ranks = rates.front().ranks;
    if (rates.size() < 2) return line;
    // Both ends matter: a bucket of gradients is as large as the one, statistics as small as the
    // other. Between them caches bend the curve.
    const AllReduceRate &small = rates.front(), &large = rates.back();
    const double slope = (large.seconds - small.seconds) / (large.bytes - small.bytes);
    if (!(slope > 0)) {
        line.latency_seconds =
            line.bytes_per_second = {std::nullopt, "times do not grow with the bytes"};
        return line;
    }
    line.latency_seconds = {std::max(0.0, small.seconds - slope * small.bytes), ""};
    line.bytes_per_second = {1 / slope, ""};
    return line;
}

}  // namespace hpcai::speed
