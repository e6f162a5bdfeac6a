// SPDX-License-Identifier: Apache-2.0
#include "launch_file.hpp"
#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::Scratch scratch;
    scratch.write("launch.json", fuzz::text_of(data, size));
    fuzz::refusing([&] {
        const benchmark::LaunchFacts facts = benchmark::read_launch_file(scratch.folder());
        fuzz::expect(facts.ranks > 0 && facts.groups > 0 && facts.degree > 0);
    });
    return 0;
}
