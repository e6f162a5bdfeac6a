// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <hpcai/comm/collectives.hpp>

#include "data/fixtures.hpp"
#include "world.hpp"

namespace hpcai::mpi_tests {

/// A folder that rank 0 makes and removes.
class SharedFolder {
public:
    explicit SharedFolder(comm::Communicator& everyone) : everyone_(everyone) {
        if (everyone.rank() == 0) mine_ = std::make_unique<data::test::TemporaryFolder>();
        path_ = comm::broadcast(everyone, mine_ ? mine_->path().string() : std::string());
    }
    ~SharedFolder() { everyone_.barrier(); }
    const std::string& path() const { return path_; }

private:
    comm::Communicator& everyone_;
    std::unique_ptr<data::test::TemporaryFolder> mine_;
    std::string path_;
};

}  // namespace hpcai::mpi_tests
