// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>
#include <hpcai/data/sample_set.hpp>

namespace hpcai::data {

DecodedImage SampleSet::whole_picture(std::uint32_t sample) const {
    throw Error(ExitCode::internal, fmt::format("{} is made in memory", name(sample)));
}

TrainingView SampleSet::training_view(ImageSize /*size*/, CounterStream /*random*/) const {
    throw Error(ExitCode::internal, "these samples are made in memory");
}

}  // namespace hpcai::data
