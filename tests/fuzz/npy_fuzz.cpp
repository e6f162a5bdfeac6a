// SPDX-License-Identifier: Apache-2.0
#include <hpcai/storage/npy.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::refusing([&] {
        const storage::NpyArray array = storage::parse_npy(fuzz::bytes_of(data, size), "fuzz.npy");
        const auto elements = static_cast<std::size_t>(array.shape().elements());
        fuzz::expect(array.dtype() == tensor::DType::f32
                         ? array.as<float>().size() == elements
                         : array.as<std::int32_t>().size() == elements);
    });
    return 0;
}
