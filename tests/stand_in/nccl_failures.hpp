// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Failures that tests/stand_in/nccl.cpp simulates.
namespace hpcai::tests {

enum class NcclCall {
    group_end,    // the end of a group of messages is an unhandled system error
    asking,       // ncclCommGetAsyncError fails with an internal error
    async_error,  // ncclCommGetAsyncError reports that another process has ended
};

/// Makes the next such call of this process fail, once.
void fail_next(NcclCall call);

}  // namespace hpcai::tests
