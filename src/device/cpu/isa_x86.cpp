// SPDX-License-Identifier: Apache-2.0
#include <dnnl.hpp>

#include "loops/loops.hpp"

namespace hpcai::device::cpu {

const SimdKernels& loops_for_this_cpu() {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
        return avx512::table();
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::table();
    return baseline::table();
}

bool has_native_bf16() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bf16");
}

bool has_native_int8() {
    // The value of a oneDNN instruction set includes the bits of the sets that it extends.
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_vnni);
    return (isa & wanted) == wanted;
}

}  // namespace hpcai::device::cpu
