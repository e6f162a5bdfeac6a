// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/device/device.hpp>

/// All-reduces of gradients between GPUs by NCCL: entry points of libhpcai_cuda.so, for
/// device::CudaLibrary::symbol().
namespace hpcai::comm {

struct NcclReducerOptions {
    Communicator& group;     // each rank has its own GPU, see obstacle_to_nccl
    device::Device& device;  // a device of the CUDA engine
    // Algorithm and format; prepare() must be called. Sums (except the bits of NaN) and error
    // feedback equal those of make_point_to_point_reducer. Absent: NCCL's own fp32 all-reduce.
    std::optional<AllReduceOptions> all_reduce = std::nullopt;
    double wait_seconds = 3600;  // longest wait for enqueued work and the other ranks
    double start_seconds = 300;  // longest wait in each call that starts NCCL or connects GPUs
    double finish_seconds = 30;  // longest shutdown, and longest wait for an abort
};

}  // namespace hpcai::comm

extern "C" {

/// Returns NCCL's version number, 22809 for 2.28.9; 0 if unknown.
int hpcai_nccl_version();

/// Makes a reducer that the caller owns. `options.group` must outlive every call of the reducer
/// except its destructor. `options.device` and the memory of the gradients must outlive the
/// reducer, because freeing memory waits for the device. Calls that wait for the device also throw
/// failures that ranks of the group announce. If this call fails on any rank, every rank throws the
/// same Error. Collective.
hpcai::comm::GradientReducer* hpcai_make_nccl_reducer(
    const hpcai::comm::NcclReducerOptions& options);

}  // extern "C"
