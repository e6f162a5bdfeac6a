// SPDX-License-Identifier: Apache-2.0
#include "kernels/optimizer.hpp"

#include <algorithm>

#include <hpcai/base/error.hpp>

#include "context.hpp"

namespace hpcai::device::cuda {
namespace {

template <typename T>
std::unique_ptr<Memory> upload_vector(const std::vector<T>& values, Device& device) {
    auto memory = device.allocate(values.size() * sizeof(T));
    device.upload(memory->data(), std::as_bytes(std::span(values)));
    return memory;
}

/// The parts of all ranges, and memory for sums of parts and trust ratios of ranges.
class TrustRatios {
public:
    TrustRatios(const std::vector<kernels::UpdateRange>& ranges, Device& device) {
        std::vector<kernels::UpdatePart> parts;
        std::vector<std::int64_t> first_part{0};
        for (std::size_t index = 0; index < ranges.size(); ++index) {
            const auto [begin, end, decays, has_ratio, copy] = ranges[index];
            for (std::int64_t at = begin; at < end; at += kPartElements) {
                parts.push_back(
                    {static_cast<std::int64_t>(index), at, std::min(at + kPartElements, end)});
            }
            first_part.push_back(static_cast<std::int64_t>(parts.size()));
        }
        parts_ = upload_vector(parts, device);
        first_part_ = upload_vector(first_part, device);
        sums_ = device.allocate(2 * parts.size() * sizeof(double));
        ratios_ = device.allocate(ranges.size() * sizeof(float));
        count_ = static_cast<std::int64_t>(parts.size());
    }

    kernels::UpdateParts parts() const {
        return {static_cast<const kernels::UpdatePart*>(parts_->data()), count_,
                static_cast<const std::int64_t*>(first_part_->data()),
                static_cast<double*>(sums_->data())};
    }
    float* ratios() const { return static_cast<float*>(ratios_->data()); }

private:
    static constexpr std::int64_t kPartElements = 1 << 13;  // summed by one thread block

    std::unique_ptr<Memory> parts_, first_part_, sums_, ratios_;
    std::int64_t count_ = 0;
};

class FlatUpdate final : public Update {
public:
    FlatUpdate(const Optimizer& optimizer, const OptimizerTensors& tensors, const Context& context,
               Device& device)
        : stream_(context.stream), rule_(optimizer.rule) {
        check(optimizer, tensors);
        for (const Optimizer::Range& range : optimizer.ranges) {
            if (range.begin == range.end) continue;
            ranges_.push_back({static_cast<std::int64_t>(range.begin),
                               static_cast<std::int64_t>(range.end), range.decays,
                               range.has_trust_ratio, range.working_copy});
        }
        device_ranges_ = upload_vector(ranges_, device);
        arguments_ = {.parameters = tensors.parameters.data(),
                      .gradients = tensors.gradients.data(),
                      .states = {tensors.states[0].data(), tensors.states[1].data()},
                      .working_dtype = optimizer.compute,
                      .rounds_parameters = optimizer.rounds_parameters,
                      .count = static_cast<std::int64_t>(tensors.parameters.size()),
                      .ranges = static_cast<const kernels::UpdateRange*>(device_ranges_->data()),
                      .range_count = static_cast<std::int64_t>(ranges_.size()),
                      .weight_decay = optimizer.weight_decay,
                      .scalars = tensors.scalars};
        if (!std::holds_alternative<Lars>(rule_) && !std::holds_alternative<Lamb>(rule_)) return;
        ratios_.emplace(ranges_, device);
        arguments_.trust_ratios = ratios_->ratios();
    }

    void run() override {
        if (ranges_.empty()) return;  // without ranges, kernels update all elements
        std::visit([this](const auto& rule) { step(rule); }, rule_);
    }

private:
    void step(const Sgd& rule) const { kernels::sgd_step(arguments_, rule, stream_); }
    void step(const Lars& rule) const {
        kernels::square_sums(arguments_, ratios_->parts(), stream_);
        kernels::lars_ratios(arguments_, rule, ratios_->parts(), ratios_->ratios(), stream_);
        kernels::lars_step(arguments_, rule, stream_);
    }
    void step(const Lamb& rule) const {
        kernels::lamb_moments(arguments_, rule, ratios_->parts(), stream_);
        kernels::lamb_ratios(arguments_, ratios_->parts(), ratios_->ratios(), stream_);
        kernels::lamb_step(arguments_, rule, stream_);
    }
    void step(const Adam& rule) const { kernels::adam_step(arguments_, rule, stream_); }
    void step(const AdaGrad& rule) const { kernels::adagrad_step(arguments_, rule, stream_); }

    cudaStream_t stream_;
    const OptimizerRule rule_;
    std::vector<kernels::UpdateRange> ranges_;
    std::unique_ptr<Memory> device_ranges_;
    std::optional<TrustRatios> ratios_;  // of LARS and LAMB
    kernels::UpdateArguments arguments_;
};

}  // namespace

std::unique_ptr<Update> build_update(const Optimizer& optimizer, const OptimizerTensors& tensors,
                                     const Context& context, Device& device) {
    ensure(optimizer.exchange == nullptr, "the CUDA engine has no trust ratios over shards");
    return std::make_unique<FlatUpdate>(optimizer, tensors, context, device);
}

}  // namespace hpcai::device::cuda
