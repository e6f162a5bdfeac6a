// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

struct CUstream_st;

/// Work on streams of the CUDA runtime that tests/simt stands in for (cudart.cpp). It is done when
/// a caller waits for it and no sooner, so that what lacks a wait is seen to come too early.
namespace hpcai::simt {

/// The order in which streams do their work; both are legal.
enum class Order {
    late,   // nothing is done before a caller waits for it
    early,  // streams but the first created do what they may as soon as it is enqueued
};

/// Sets the order of streams that are created from now on.
void set_order(Order order);

/// Enqueues work that may touch device memory. Without a stream it is done at once, after that of
/// all streams that do not go their own way (cudaStreamNonBlocking). What it throws is thrown here
/// without a stream, and otherwise reported by every later call on the device.
void enqueue(CUstream_st* stream, std::function<void()> work);

/// Whether work enqueued there is recorded.
bool is_captured(CUstream_st* stream);

/// Advances the clock of events by so much, as if the work that calls this had taken it.
void pretend(double seconds);

/// How many pieces of work are enqueued and not done.
std::size_t pending_work();

}  // namespace hpcai::simt
