// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/training/checkpoint.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // The bytes in place of rank-0.done; what they let pass is the checkpoint that was written.
    static const fuzz::Scratch scratch;
    static const training::CheckpointLocation place{scratch.folder(), "digest", 0, 1};
    static const std::vector<float> parameters{1, 2, 3};
    static const std::vector<double> progress{0.5, 7};
    static const bool is_written = [] {
        training::Checkpoint checkpoint{12, 34, training::Snapshot()};
        checkpoint.snapshot.put("parameters", parameters);
        checkpoint.snapshot.put_numbers("progress", progress);
        training::write_checkpoint(place, checkpoint);
        return true;
    }();
    fuzz::expect(is_written);
    scratch.write("step-000000000012/rank-0.done", fuzz::text_of(data, size));
    fuzz::refusing([&] {
        const training::Checkpoint read = training::read_checkpoint(place, 12);
        fuzz::expect(read.step == 12);
        fuzz::expect(std::ranges::equal(read.snapshot.floats("parameters", 3), parameters));
        fuzz::expect(std::ranges::equal(read.snapshot.numbers("progress", 2), progress));
    });
    return 0;
}
