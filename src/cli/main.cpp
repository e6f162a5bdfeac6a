// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/cli/program.hpp>
#include <hpcai/comm/launch.hpp>

namespace {

int failure(const hpcai::Error& error) {
    std::cout.flush();
    if (error.code() == hpcai::ExitCode::usage &&
        hpcai::comm::is_other_than_first_rank(std::getenv)) {
        // All ranks have the same arguments, and the launcher ends all ranks after the first
        // failure. The delay lets the first rank report the error before that, even if it starts
        // last on a busy machine.
        std::this_thread::sleep_for(std::chrono::seconds(5));
    } else {
        std::cerr << "hpcai500: " << error.what() << '\n';
    }
    return static_cast<int>(error.code());
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // a run must not end because the reader of its output has ended
    try {
        const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
        return static_cast<int>(hpcai::cli::run_program(arguments, std::cout));
    } catch (const std::exception& error) {
        return failure(hpcai::to_error(error));
    }
}
