// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <exception>
#include <memory>
#include <vector>

#include <ucontext.h>

#include <hpcai/base/error.hpp>

namespace hpcai::simt {
namespace {

constexpr unsigned kWarp = 32;
constexpr std::size_t kStackBytes = 64 * 1024;

enum class State { ready, at_block_barrier, at_warp_barrier, finished };

/// A thread of the GPU. It runs one block after the other, so that its stack is set up once.
struct Fiber {
    std::unique_ptr<char[]> stack;
    std::jmp_buf resume_at{};
    bool entered = false;
    Place place;
    State state = State::ready;
    std::uint32_t mask = 0;  // of the warp barrier where it waits
};

/// The state of a running block.
class Block {
public:
    Block(unsigned threads, const std::function<void()>& body) : body_(body), fibers_(threads) {
        for (Fiber& fiber : fibers_) {
            fiber.stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
        }
        exchange_.resize((threads + kWarp - 1) / kWarp);
    }

    void run(Dim3 block, Dim3 blocks);
    void wait(State barrier, std::uint32_t mask);
    Fiber& current() { return fibers_[current_]; }
    unsigned lane() const { return current_ % kWarp; }
    std::array<std::uint64_t, kWarp>& exchange() { return exchange_[current_ / kWarp]; }

private:
    static void enter();
    void resume(std::size_t index);
    void leave(State state);
    void run_warp(std::size_t warp, bool backwards);
    bool release_warp(std::size_t first, std::size_t lanes);
    bool release_block();

    const std::function<void()>& body_;
    std::vector<Fiber> fibers_;
    std::vector<std::array<std::uint64_t, kWarp>> exchange_;  // one slot for each lane, per warp
    std::jmp_buf scheduler_{};
    unsigned current_ = 0;
    std::exception_ptr failure_;
};

// Fibers start in a function without parameters, so it needs the block as a variable.
thread_local Block* running = nullptr;

void Block::enter() {
    Block& block = *running;
    for (;;) {
        try {
            block.body_();
        } catch (...) {
            block.failure_ = std::current_exception();
        }
        block.leave(State::finished);  // returns in the next block
    }
}

/// Unlike swapcontext, jumps do not call the kernel to set the signal mask.
void Block::resume(std::size_t index) {
    current_ = static_cast<unsigned>(index);
    Fiber& fiber = fibers_[index];
    if (_setjmp(scheduler_) != 0) return;
    if (fiber.entered) _longjmp(fiber.resume_at, 1);
    fiber.entered = true;
    ucontext_t context{};
    getcontext(&context);
    context.uc_stack.ss_sp = fiber.stack.get();
    context.uc_stack.ss_size = kStackBytes;
    makecontext(&context, &Block::enter, 0);
    setcontext(&context);
}

void Block::leave(State state) {
    Fiber& fiber = current();
    fiber.state = state;
    if (_setjmp(fiber.resume_at) == 0) _longjmp(scheduler_, 1);
}

void Block::wait(State barrier, std::uint32_t mask) {
    current().mask = mask;
    leave(barrier);
}

/// A warp runs until all its lanes wait or have ended. Warps and their lanes run in ascending and
/// descending order in turn, so that a missing barrier is detected.
void Block::run(Dim3 block, Dim3 blocks) {
    running = this;
    const std::size_t threads = fibers_.size();
    for (std::size_t index = 0; index < threads; ++index) {
        Fiber& fiber = fibers_[index];
        fiber.place = {{static_cast<unsigned>(index), 0, 0},
                       block,
                       {static_cast<unsigned>(threads), 1, 1},
                       blocks};
        fiber.state = State::ready;
    }
    for (std::size_t round = block.x + block.y;; ++round) {
        const std::size_t warps = exchange_.size();
        for (std::size_t turn = 0; turn < warps; ++turn) {
            run_warp(round % 2 == 0 ? turn : warps - 1 - turn, round % 2 != 0);
        }
        const auto has_ended = [](const Fiber& fiber) { return fiber.state == State::finished; };
        if (std::all_of(fibers_.begin(), fibers_.end(), has_ended)) return;
        ensure(release_block(), "threads of block ({}, {}) wait at different barriers", block.x,
               block.y);
    }
}

void Block::run_warp(std::size_t warp, bool backwards) {
    const std::size_t first = warp * kWarp;
    const std::size_t lanes = std::min<std::size_t>(kWarp, fibers_.size() - first);
    do {
        for (std::size_t turn = 0; turn < lanes; ++turn) {
            const std::size_t index = first + (backwards ? lanes - 1 - turn : turn);
            if (fibers_[index].state == State::ready) resume(index);
            if (failure_) std::rethrow_exception(failure_);
        }
    } while (release_warp(first, lanes));
}

/// Lanes continue when all lanes in the mask have arrived with the same mask.
bool Block::release_warp(std::size_t first, std::size_t lanes) {
    bool released = false;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        const Fiber& one = fibers_[first + lane];
        if (one.state != State::at_warp_barrier) continue;
        const std::uint32_t mask = one.mask;
        ensure(mask >> lane & 1, "lane {} shuffles with mask {:#x}, which is without it", lane,
               mask);
        bool complete = true;
        for (std::size_t other = 0; other < kWarp; ++other) {
            if (!(mask >> other & 1)) continue;
            complete = complete && other < lanes &&
                       fibers_[first + other].state == State::at_warp_barrier &&
                       fibers_[first + other].mask == mask;
        }
        if (!complete) continue;
        for (std::size_t other = 0; other < lanes; ++other) {
            if (mask >> other & 1) fibers_[first + other].state = State::ready;
        }
        released = true;
    }
    return released;
}

/// A finished thread no longer counts at barriers, as on a GPU.
bool Block::release_block() {
    for (const Fiber& fiber : fibers_) {
        if (fiber.state != State::at_block_barrier && fiber.state != State::finished) return false;
    }
    for (Fiber& fiber : fibers_) {
        if (fiber.state == State::at_block_barrier) fiber.state = State::ready;
    }
    return true;
}

}  // namespace

const Place& place() {
    return running->current().place;
}

void check_grid(Dim3 blocks, unsigned threads) {
    ensure(threads > 0 && threads <= 1024 && blocks.x > 0 && blocks.y > 0 && blocks.y < 65536,
           "a grid of {} x {} blocks of {} threads", blocks.x, blocks.y, threads);
}

void run_grid(Dim3 blocks, unsigned threads, const std::function<void()>& body) {
    check_grid(blocks, threads);
    Block block(threads, body);
    for (unsigned y = 0; y < blocks.y; ++y) {
        for (unsigned x = 0; x < blocks.x; ++x) block.run({x, y, 0}, blocks);
    }
}

void block_barrier() {
    running->wait(State::at_block_barrier, 0);
}

std::uint64_t shuffle(std::uint32_t mask, std::uint64_t bits, unsigned source) {
    running->exchange()[running->lane()] = bits;
    running->wait(State::at_warp_barrier, mask);
    const std::uint64_t result = running->exchange()[source % kWarp];
    running->wait(State::at_warp_barrier, mask);  // before another lane sends the next value
    return result;
}

std::uint32_t ballot(std::uint32_t mask, bool vote) {
    running->exchange()[running->lane()] = vote;
    running->wait(State::at_warp_barrier, mask);
    std::uint32_t result = 0;
    for (unsigned lane = 0; lane < kWarp; ++lane) {
        if (mask >> lane & 1 && running->exchange()[lane] != 0) result |= 1u << lane;
    }
    running->wait(State::at_warp_barrier, mask);
    return result;
}

}  // namespace hpcai::simt
