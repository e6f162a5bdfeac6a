// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

namespace hpcai {
namespace {

TEST(ToError, KeepsTheCodeAndTextOfAnError) {
    const Error error = to_error(Error(ExitCode::data, "a file is missing"));
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_STREQ(error.what(), "a file is missing");
}

TEST(ToError, GivesOtherExceptionsTheCodeInternal) {
    const Error error = to_error(std::runtime_error("no thread"));
    EXPECT_EQ(error.code(), ExitCode::internal);
    EXPECT_STREQ(error.what(), "no thread");
}

TEST(ToError, NamesKeysThatReduceTheMemory) {
    const Error error = to_error(std::bad_alloc());
    EXPECT_EQ(error.code(), ExitCode::internal);
    EXPECT_STREQ(error.what(),
                 "out of host memory; a run needs less with a smaller training.batch_size, a "
                 "smaller data.prefetch_batches or fewer ranks per node");
}

}  // namespace
}  // namespace hpcai
