// SPDX-License-Identifier: Apache-2.0
#include <hpcai/training/snapshot.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // What a rank takes out of a checkpoint, which its marker fits. What was read is written as the
    // same arrays.
    static const fuzz::Scratch scratch;
    const auto file = scratch.write("rank-0.safetensors", fuzz::text_of(data, size));
    fuzz::refusing([&] {
        const training::Snapshot state = training::Snapshot::read(file);
        state.write(scratch.folder() / "again.safetensors");
        const auto again = training::Snapshot::read(scratch.folder() / "again.safetensors");
        fuzz::expect(again.bytes() == state.bytes());
        const auto parameters = state.floats("parameters", 3);
        fuzz::expect(parameters.size() == 3);
        const auto progress = state.table("progress", 2);
        for (const double value : progress) {
            const std::int64_t whole = state.whole("progress", value, 0, 1'000'000);
            fuzz::expect(whole >= 0 && whole <= 1'000'000);
        }
        state.text("continuations");
    });
    return 0;
}
