// SPDX-License-Identifier: Apache-2.0

/// The entry point of libhpcai_cuda.so where there is no NCCL.
extern "C" int hpcai_nccl_version() {
    return 0;
}
