// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/plan/data_sampler.hpp>

namespace hpcai::plan {

inline DataSampler make_sampler(config::Sampler kind, std::uint32_t samples, std::uint64_t seed = 1,
                                double fraction = 0.632) {
    config::BaggingConfig bagging;
    bagging.sampler = kind;
    bagging.subsample_fraction = fraction;
    return DataSampler(bagging, seed, samples);
}

}  // namespace hpcai::plan
