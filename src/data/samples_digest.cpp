// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <hpcai/data/samples_digest.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>

namespace hpcai::data {

std::string samples_digest(const SampleSets& samples) {
    storage::Sha256 digest;
    for (const SampleSet* set : {samples.training.get(), samples.validation.get()}) {
        digest.update(storage::bytes_of(fmt::format("{} samples\n", set->samples())));
        for (std::int64_t sample = 0; sample < set->samples(); ++sample) {
            const auto number = static_cast<std::uint32_t>(sample);
            digest.update(
                storage::bytes_of(fmt::format("{} {}\n", set->label(number), set->name(number))));
        }
    }
    return digest.finish_hex();
}

}  // namespace hpcai::data
