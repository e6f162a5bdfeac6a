// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <hpcai/comm/communicator.hpp>

namespace hpcai::comm {

/// Runs `part` on every rank and waits for all. When it throws on any, every rank throws the
/// failure of the lowest such rank as an Error with that code, so that none is left waiting in a
/// later collective. Exceptions other than Error become Error(internal). `part` may use
/// collectives only if it cannot fail before them. Collective.
void collective_try(Communicator& ranks, const std::function<void()>& part);

}  // namespace hpcai::comm
