// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/training/snapshot.hpp>

#include "outcome.hpp"

using namespace hpcai;

namespace {

/// NaN included.
template <typename T>
bool has_same_bytes(std::span<const T> left, std::span<const T> right) {
    return std::ranges::equal(std::as_bytes(left), std::as_bytes(right));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // Restores the arrays of a checkpoint that matches its marker. Writing them again gives the
    // same arrays.
    static const fuzz::Scratch scratch;
    const auto file = scratch.write("rank-0.safetensors", fuzz::text_of(data, size));
    fuzz::refusing([&] {
        const training::Snapshot state = training::Snapshot::read(file);
        state.write(scratch.folder() / "again.safetensors");
        const auto again = fuzz::accepting(
            [&] { return training::Snapshot::read(scratch.folder() / "again.safetensors"); });
        const auto parameters = state.floats("parameters", 3);
        const auto same_parameters = fuzz::accepting([&] { return again.floats("parameters", 3); });
        fuzz::expect(parameters.size() == 3 && has_same_bytes(parameters, same_parameters));
        const auto progress = state.table("progress", 2);
        const auto same_progress = fuzz::accepting([&] { return again.table("progress", 2); });
        fuzz::expect(has_same_bytes(progress, same_progress));
        for (const double value : progress) {
            const std::int64_t whole = state.integer("progress", value, 0, 1'000'000);
            fuzz::expect(whole >= 0 && whole <= 1'000'000);
        }
        const std::string& continuations = state.text("continuations");
        fuzz::expect(fuzz::accepting([&] { return again.text("continuations"); }) == continuations);
    });
    return 0;
}
