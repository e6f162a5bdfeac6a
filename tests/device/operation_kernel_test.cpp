// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/device/operation_kernel.hpp>

namespace hpcai::device {
namespace {

struct NoContext {};

/// A kernel in which a library fails forward, and the program backward.
class FailingKernel : public OperationKernel<ops::Relu, NoContext> {
public:
    using OperationKernel::OperationKernel;

private:
    void forward() override { throw std::runtime_error("could not execute a primitive"); }
    void input_gradient() override { throw Error(ExitCode::watchdog, "rank 1 hangs"); }
};

TEST(OperationKernel, NamesOperationAndPassInWhichALibraryFails) {
    const NoContext context;
    FailingKernel kernel(ops::Relu{{1, 2, 2, 8}}, {}, context);
    const auto error_in = [&](ops::Pass pass) {
        try {
            kernel.run(pass);
        } catch (const Error& error) {
            return error;
        }
        return Error(ExitCode::ok, "nothing was thrown");
    };
    const Error library = error_in(ops::Pass::forward), own = error_in(ops::Pass::input_gradient);
    EXPECT_EQ(library.code(), ExitCode::internal);
    EXPECT_STREQ(library.what(), "relu, forward pass: could not execute a primitive");
    EXPECT_EQ(own.code(), ExitCode::watchdog);
    EXPECT_STREQ(own.what(), "rank 1 hangs");
}

}  // namespace
}  // namespace hpcai::device
