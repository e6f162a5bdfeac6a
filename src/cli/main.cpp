// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/cli/program.hpp>

namespace {

/// Returns true if the first rank reports the error for all ranks, which have the same arguments.
bool is_reported_by_first_rank(hpcai::ExitCode code) {
    const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
    return code == hpcai::ExitCode::usage && rank != nullptr && std::string_view(rank) != "0";
}

int failure(const std::exception& error, hpcai::ExitCode code) {
    std::cout.flush();
    if (is_reported_by_first_rank(code)) {
        // mpirun ends all ranks after the first failure. The delay lets the first rank report the
        // error before that, even if it starts last on a busy machine.
        std::this_thread::sleep_for(std::chrono::seconds(5));
    } else {
        std::cerr << "hpcai500: " << error.what() << '\n';
    }
    return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
        return static_cast<int>(hpcai::cli::run_program(arguments, std::cout));
    } catch (const hpcai::Error& error) {
        return failure(error, error.code());
    } catch (const std::exception& error) {
        return failure(error, hpcai::ExitCode::internal);
    }
}
