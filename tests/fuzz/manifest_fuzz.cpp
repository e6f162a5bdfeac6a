// SPDX-License-Identifier: Apache-2.0
#include <hpcai/storage/manifest.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::refusing([&] {
        const auto digests = storage::parse_manifest(fuzz::text_of(data, size), "manifest.sha256");
        fuzz::expect(fuzz::accepting([&] {
                         return storage::parse_manifest(storage::manifest_text(digests), "again");
                     }) == digests);
    });
    return 0;
}
