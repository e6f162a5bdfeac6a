// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "cudnn_graphs.hpp"

namespace hpcai::device::cuda {

/// Decides which fused ("joined") operations a network is built of; see Device::accepts. All need
/// training and multiples of 8 channels. Norms need statistics of the whole batch. Convolutions
/// need plans of cuDNN, which exist in fp16 only, and must run on the device, if there is one. With
/// autotune they must take less time than the separate operations ("apart"), both with their
/// fastest plans; Context::plans keeps that result. A deterministic device does not run them.
/// Answers do not change while the object lives.
class Acceptance {
public:
    explicit Acceptance(const Context& context) : context_(context) {}
    bool operator()(const ops::Operation& operation, const KernelOptions& options);

private:
    bool accepts(const ops::Convolution& op, const KernelOptions& options);
    bool accepts(const ops::BatchNorm& op, const KernelOptions& options);
    bool accepts(const ops::NormConvolution& op, const KernelOptions& options);
    bool accepts(const ops::DualNorm& op, const KernelOptions& options);
    template <typename Other>
    bool accepts(const Other&, const KernelOptions&) {
        return false;
    }

    struct Answer {
        bool joined = false;
        bool lasts = true;  // valid in later runs: false if a trial failed
    };
    /// Returns the known answer, or the result of `answer`; false if a pass has no plan.
    bool decide(const std::string& kind, const ConvolutionShape& shape,
                std::initializer_list<ConvolutionPass> passes,
                const std::function<Answer()>& answer);
    Answer is_faster(const std::vector<ops::Operation>& joined,
                     const std::vector<ops::Operation>& apart, const KernelOptions& options);

    const Context& context_;
    std::map<std::string, bool> known_;  // by shape, because a trial is slow
};

}  // namespace hpcai::device::cuda
