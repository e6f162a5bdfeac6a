// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/device/shard_exchange.hpp>

namespace hpcai::device {
namespace {

class Terms final : public ShardMessages {
public:
    explicit Terms(std::span<double> values)
        : mine_(values.begin(), values.end()), term_(values.size()), sums_(values) {
        std::ranges::fill(sums_, 0.0);
    }

    std::size_t bytes_to(int) const override { return sums_.size_bytes(); }
    std::size_t bytes_from(int) const override { return sums_.size_bytes(); }
    void write(int, std::span<std::byte> to) override {
        std::memcpy(to.data(), mine_.data(), to.size());
    }
    void read(int, std::span<const std::byte> from) override {
        if (!from.empty()) std::memcpy(term_.data(), from.data(), from.size());
        const std::vector<double>& term = from.empty() ? mine_ : term_;
        for (std::size_t index = 0; index < sums_.size(); ++index) sums_[index] += term[index];
    }

private:
    std::vector<double> mine_, term_;
    std::span<double> sums_;
};

}  // namespace

void sum_over_shards(ShardExchange& exchange, std::span<double> values) {
    if (values.empty()) return;
    Terms terms(values);
    exchange.exchange(terms);
}

}  // namespace hpcai::device
