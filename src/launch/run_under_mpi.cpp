// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>
#include <optional>

#include <hpcai/comm/launch.hpp>
#include <hpcai/launch/run_under_mpi.hpp>

namespace hpcai::launch {

ExitCode run_under_mpi(const std::string& command_line,
                       const std::function<ExitCode(comm::MpiWorld&)>& work) {
    bool prints = true;
    const auto report = [&prints](const Error& error) {
        if (prints) std::cerr << "hpcai500: " << error.what() << "\n";
        return error.code();
    };
    ExitCode code = ExitCode::internal;
    try {
        comm::check_launch(std::nullopt, std::getenv, command_line);
        comm::MpiWorld world;
        prints = world.rank() == 0;  // all ranks have the same Error
        try {
            comm::check_launch(world.size(), std::getenv, command_line);
            code = work(world);
        } catch (const Error& error) {
            code = report(error);
        } catch (const std::exception& error) {
            // Other ranks would wait for this rank until their time limit.
            std::cerr << "hpcai500: rank " << world.rank() << ": " << to_error(error).what()
                      << "\n";
            world.abort(ExitCode::internal);
        }
        world.finish(code);
    } catch (const Error& error) {
        code = report(error);
    }
    return code;
}

}  // namespace hpcai::launch
