// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>
#include <optional>

#include <hpcai/comm/launch.hpp>
#include <hpcai/launch/run_under_mpi.hpp>

namespace hpcai::launch {
namespace {

const char* environment(const char* name) {
    return std::getenv(name);
}

}  // namespace

ExitCode run_under_mpi(const std::string& command_line,
                       const std::function<ExitCode(comm::MpiWorld&)>& work) {
    try {
        comm::check_launch(std::nullopt, environment, command_line);
    } catch (const Error& error) {
        std::cerr << "hpcai500: " << error.what() << "\n";
        return error.code();
    }
    ExitCode code = ExitCode::internal;
    bool speaks = true;
    try {
        comm::MpiWorld world;
        speaks = world.rank() == 0;
        try {
            comm::check_launch(world.size(), environment, command_line);
            code = work(world);
        } catch (const Error& error) {
            // Failures of the start-up are the same on all ranks.
            if (speaks) std::cerr << "hpcai500: " << error.what() << "\n";
            code = error.code();
        } catch (const std::exception& error) {
            // The other ranks of the group wait for this one in a sum that will never come.
            std::cerr << "hpcai500: rank " << world.rank() << ": " << error.what() << "\n";
            world.abort(ExitCode::internal);
        }
        world.finish(code);
    } catch (const Error& error) {
        if (speaks) std::cerr << "hpcai500: " << error.what() << "\n";
        code = error.code();
    }
    return code;
}

}  // namespace hpcai::launch
