// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

/// The actions of every test program before and after its tests.
namespace hpcai::tests {

/// Sets the variables of the file `test_environment` next to the program, and starts the program
/// again with them: some libraries read theirs before main(). Variables that are set keep their
/// values, except HPCAI500_*, which are overwritten (but for HPCAI500_MPIRUN). Returns when nothing
/// has to change, and where there is no such file.
void complete_environment(char** argv);

/// RUN_ALL_TESTS(), which also fails where no test matches the filter.
int run_all_tests();

/// Makes GoogleTest print, as the last lines of a run with failures, the commands that run the
/// tests that failed. `launcher` goes before the program, such as "mpirun -n 4 ". Call it after
/// testing::InitGoogleTest.
void print_commands_of_failures(const std::string& launcher);

}  // namespace hpcai::tests
