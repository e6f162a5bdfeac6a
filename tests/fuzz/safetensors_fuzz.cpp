// SPDX-License-Identifier: Apache-2.0
#include <hpcai/storage/safetensors.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const storage::Bytes bytes = fuzz::bytes_of(data, size);
    fuzz::refusing([&] {
        const storage::SafetensorsFile file({bytes.begin(), bytes.end()}, "fuzz.safetensors");
        for (const storage::StoredTensor& tensor : file.tensors()) {
            std::size_t elements = storage::size_of(tensor.type);
            for (const std::int64_t extent : tensor.shape) {
                elements *= static_cast<std::size_t>(extent);
            }
            fuzz::expect(tensor.bytes.size() == elements);
            // Every byte can be read.
            volatile unsigned sum = 0;
            for (const std::byte byte : tensor.bytes) sum = sum + static_cast<unsigned>(byte);
        }
    });
    return 0;
}
