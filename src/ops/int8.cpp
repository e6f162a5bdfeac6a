// SPDX-License-Identifier: Apache-2.0
#include <hpcai/ops/int8.hpp>

namespace hpcai::ops {

bool computes_in_int8(const Convolution& op, Pass pass) {
    constexpr std::int64_t kFewestChannels = 32, kVector = 16;
    constexpr std::int64_t kMaxTerms = std::int64_t{1} << 16;  // of 255 x 127 each, below 2^31
    const std::int64_t channels = op.input[3], taps = op.kernel * op.kernel;
    const bool is_forward = channels >= kFewestChannels && channels % kVector == 0 &&
                            op.filters % kVector == 0 && taps * channels <= kMaxTerms;
    if (pass == Pass::forward) return is_forward;
    return pass == Pass::input_gradient && is_forward && op.stride == 1 && op.padding < op.kernel &&
           taps * op.filters <= kMaxTerms;
}

}  // namespace hpcai::ops
