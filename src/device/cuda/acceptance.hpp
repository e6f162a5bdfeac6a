// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "context.hpp"

namespace hpcai::device::cuda {

/// Which joined operations a network is to be built of; see Device::accepts. cuDNN must have a
/// plan, which it has in fp16 only; and with a device and autotune, forward and backward pass have
/// to take less time than those of the parts, which Context::plans remembers. What a device was
/// seen to refuse is never accepted.
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
        bool lasts = true;  // for other runs, too: nothing lacked memory for the moment
    };
    /// The answer that is known; else that of `answer`.
    bool decide(const std::string& question, const std::function<Answer()>& answer);
    Answer pays(const std::vector<ops::Operation>& joined, const std::vector<ops::Operation>& apart,
                const KernelOptions& options);

    const Context& context_;
    std::map<std::string, bool> known_;  // by shape: finding out takes long
};

}  // namespace hpcai::device::cuda
