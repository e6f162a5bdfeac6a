// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/error.hpp>

namespace hpcai::comm {

/// What a Communicator throws where another rank has announced a failure, or when it has failed
/// before.
class AnnouncedError : public Error {
public:
    using Error::Error;
};

}  // namespace hpcai::comm
