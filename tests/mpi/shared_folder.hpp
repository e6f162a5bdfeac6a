// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hpcai/comm/agreement.hpp>

#include "data/fixtures.hpp"
#include "world.hpp"

namespace hpcai::mpi_tests {

/// A folder that rank 0 makes and removes.
class SharedFolder {
public:
    explicit SharedFolder(comm::Communicator& everyone) : everyone_(everyone) {
        if (everyone.rank() == 0) mine_ = std::make_unique<data::test::TemporaryFolder>();
        const std::string text = mine_ ? mine_->path().string() : "";
        std::vector<std::byte> bytes(text.size());
        std::ranges::copy(std::as_bytes(std::span(text)), bytes.begin());
        comm::broadcast_bytes(everyone, bytes, 0);
        for (const std::byte byte : bytes) path_ += static_cast<char>(byte);
    }
    ~SharedFolder() { everyone_.barrier(); }
    const std::string& path() const { return path_; }

private:
    comm::Communicator& everyone_;
    std::unique_ptr<data::test::TemporaryFolder> mine_;
    std::string path_;
};

}  // namespace hpcai::mpi_tests
