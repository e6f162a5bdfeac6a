// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "test_program.hpp"

int main(int argc, char** argv) {
    hpcai::tests::complete_environment(argv);
    testing::InitGoogleTest(&argc, argv);
    hpcai::tests::print_commands_of_failures("");
    return hpcai::tests::run_all_tests();
}
