// SPDX-License-Identifier: Apache-2.0
#include <hpcai/comm/mpi_world.hpp>
#include <hpcai/context/build.hpp>
#include <hpcai/device/cpu_device.hpp>

#include "commit.hpp"

namespace hpcai::context {

std::map<std::string, std::string> describe_build() {
    return {{"git_commit", HPCAI500_COMMIT},
            {"build_type", HPCAI500_BUILD_TYPE},
            {"compiler", HPCAI500_COMPILER},
            {"cuda_engine", HPCAI500_CUDA_ENGINE},
            {"mpi", comm::MpiWorld::library_version()},
            {"onednn", device::onednn_version()}};
}

}  // namespace hpcai::context
