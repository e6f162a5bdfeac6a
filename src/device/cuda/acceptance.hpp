// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "context.hpp"

namespace hpcai::device::cuda {

/// Which joined operations a network is to be built of; see Device::accepts. cuDNN's plans decide,
/// and they come in fp16 only.
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

    const Context& context_;
    std::map<std::string, bool> known_;  // by shape: finding out takes long
};

}  // namespace hpcai::device::cuda
