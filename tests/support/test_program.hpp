// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

/// The actions of every test program before and after its tests.
namespace hpcai::tests {

/// Sets the variables of the file `test_environment` next to the program and restarts the program
/// with them, because some libraries read variables before main(). Variables that are set keep
/// their values, except HPCAI500_*, which are overwritten (HPCAI500_MPIRUN is not). Returns if no
/// variable has to change or if there is no such file.
void complete_environment(char** argv);

/// RUN_ALL_TESTS(), which also fails if no test matches the filter.
int run_all_tests();

/// Makes GoogleTest print the commands that run the failed tests, as the last lines of a run with
/// failures. `launcher` precedes the program, such as "mpirun -n 4 ". Call it after
/// testing::InitGoogleTest.
void print_commands_of_failures(const std::string& launcher);

}  // namespace hpcai::tests
