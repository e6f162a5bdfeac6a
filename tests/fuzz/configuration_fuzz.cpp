// SPDX-License-Identifier: Apache-2.0
#include <hpcai/config/reader.hpp>
#include <hpcai/config/writer.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // The reader must accept the written form of an accepted configuration as the same one.
    fuzz::refusing([&] {
        const config::Config config =
            config::parse(std::string(fuzz::text_of(data, size)), "fuzz.yaml", {});
        const std::string written = config::to_yaml(config);
        fuzz::expect(config::to_yaml(fuzz::accepting(
                         [&] { return config::parse(written, "written.yaml", {}); })) == written);
    });
    return 0;
}
