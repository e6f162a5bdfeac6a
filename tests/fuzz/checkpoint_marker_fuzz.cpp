// SPDX-License-Identifier: Apache-2.0
#include <hpcai/training/checkpoint.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // The bytes in place of rank-0.done; what they let pass is the checkpoint that was written.
    static const fuzz::Scratch scratch;
    static const training::CheckpointPlace place{scratch.folder(), "digest", 0, 1};
    static const std::size_t bytes = [] {
        training::Checkpoint checkpoint{12, 34, training::Snapshot()};
        checkpoint.snapshot.put("parameters", {1, 2, 3});
        checkpoint.snapshot.put_numbers("progress", {0.5, 7});
        training::write_checkpoint(place, checkpoint);
        return checkpoint.snapshot.bytes();
    }();
    scratch.write("step-000000000012/rank-0.done", fuzz::text_of(data, size));
    fuzz::refusing([&] {
        const training::Checkpoint read = training::read_checkpoint(place, 12);
        fuzz::expect(read.step == 12 && read.snapshot.bytes() == bytes);
    });
    return 0;
}
