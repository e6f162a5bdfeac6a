// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/device/shard_exchange.hpp>

namespace hpcai::device {
namespace {

class ShardSums final : public ShardMessages {
public:
    explicit ShardSums(std::span<double> values)
        : own_(values.begin(), values.end()), received_(values.size()), sums_(values) {
        std::ranges::fill(sums_, 0.0);
    }

    std::size_t bytes_to(int) const override { return sums_.size_bytes(); }
    std::size_t bytes_from(int) const override { return sums_.size_bytes(); }
    void write(int, std::span<std::byte> to) override {
        std::memcpy(to.data(), own_.data(), to.size());
    }
    void read(int, std::span<const std::byte> from) override {
        if (!from.empty()) std::memcpy(received_.data(), from.data(), from.size());
        const std::vector<double>& addend = from.empty() ? own_ : received_;
        for (std::size_t index = 0; index < sums_.size(); ++index) sums_[index] += addend[index];
    }

private:
    std::vector<double> own_, received_;
    std::span<double> sums_;
};

}  // namespace

void sum_over_shards(ShardExchange& exchange, std::span<double> values) {
    if (values.empty()) return;
    ShardSums sums(values);
    exchange.exchange(sums);
}

}  // namespace hpcai::device
