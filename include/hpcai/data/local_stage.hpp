// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

namespace hpcai::data {

/// This rank's share in its node's copies of samples, for as long as it reads them.
class LocalStage {
public:
    struct State;
    explicit LocalStage(std::unique_ptr<State> state);
    /// Does what leave(false) does.
    ~LocalStage();
    LocalStage(const LocalStage&) = delete;
    LocalStage& operator=(const LocalStage&) = delete;

    /// Samples of this rank whose copies could not be read any more or were damaged, and which are
    /// therefore read where their sources lie; 0 after leave().
    std::int64_t lost_copies() const;

    /// Nothing of the stage is read by this rank any more; `completed`: it did its part of the run.
    /// The last of the node's ranks removes the stage if data.staging_cleanup says so. Not
    /// collective; once, later calls do nothing.
    void leave(bool completed) noexcept;

private:
    std::unique_ptr<State> state_;
};

}  // namespace hpcai::data
