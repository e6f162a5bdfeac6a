// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

struct CUstream_st;

/// Work on the streams of the emulated CUDA runtime (cudart.cpp). It runs only when a caller waits
/// for it, so that a missing wait is detected.
namespace hpcai::simt {

/// The order in which streams run their work; CUDA allows both.
enum class Order {
    late,   // work runs when a caller waits for it
    early,  // streams except the first run work as soon as possible
};

/// Sets the order for streams that are created later.
void set_order(Order order);

/// Enqueues work that may access device memory. Without a stream it runs at once, after the work of
/// all blocking streams, and its exceptions are thrown here. Otherwise every later call on the
/// device reports them.
void enqueue(CUstream_st* stream, std::function<void()> work);

/// Returns whether the stream is being captured.
bool is_captured(CUstream_st* stream);

/// Advances the clock of events by this time, as if the calling work had taken it.
void pretend(double seconds);

/// Returns the number of enqueued tasks that have not run.
std::size_t pending_work();

}  // namespace hpcai::simt
