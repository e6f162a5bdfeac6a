// SPDX-License-Identifier: Apache-2.0
#include "loops/loops.hpp"

namespace hpcai::device::cpu {

const SimdKernels& loops_for_this_cpu() {
    return baseline::table();
}

bool has_native_bf16() {
    return false;
}

bool has_native_int8() {
    return false;
}

}  // namespace hpcai::device::cpu
