// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Failures that tests/stand_in/nccl.cpp makes up.
namespace hpcai::tests {

enum class NcclCall {
    group_end,    // the end of a group of messages is an unhandled system error
    asking,       // ncclCommGetAsyncError is an internal error
    async_error,  // ncclCommGetAsyncError finds that another process is gone
};

/// The next such call of this process fails, once.
void fail_next(NcclCall call);

}  // namespace hpcai::tests
