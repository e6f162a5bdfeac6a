// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/device/device.hpp>

/// Sums of gradients among GPUs by NCCL: entry points of libhpcai_cuda.so, for
/// device::CudaLibrary::symbol().
namespace hpcai::comm {

struct NcclReducerOptions {
    Communicator& group;     // each rank with a GPU of its own, see obstacle_to_nccl
    device::Device& device;  // of the CUDA engine
    // How sums are made, with the same bits as by make_exchange_reducer, those of NaN apart, and
    // its error feedback; every sum is prepared. Absent: as NCCL sums fp32.
    std::optional<AllReduceOptions> sums = std::nullopt;
    double wait_seconds = 3600;  // longest wait for enqueued work and the other ranks
    double start_seconds = 300;  // longest start, which connects the GPUs
    double finish_seconds = 30;  // longest end; what hangs longer is left to the end of the process
};

}  // namespace hpcai::comm

extern "C" {

/// NCCL's number for its version, 22809 for 2.28.9; 0 when it has none.
int hpcai_nccl_version();

/// The caller owns it. `options.group` outlives every call but that which ends it, `options.device`
/// and the memory whose sums it makes outlive that too: to free memory is to wait for the device.
/// What waits for the device throws failures that ranks announce in the group as well. When it
/// fails on any rank, every rank throws the same Error. Collective.
hpcai::comm::GradientReducer* hpcai_make_nccl_reducer(
    const hpcai::comm::NcclReducerOptions& options);

}  // extern "C"
