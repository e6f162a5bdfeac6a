// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include <hpcai/data/climate_generator.hpp>

#include "events.hpp"

namespace hpcai::data::climate {

/// Identifies the random numbers of one sample.
struct SampleKey {
    std::uint64_t seed = 0;
    Split split{};
    std::uint32_t number = 0;

    /// Returns an independent random stream for each `part` of the sample.
    CounterStream stream(std::uint32_t part) const {
        return {seed, RandomPurpose::climate, static_cast<std::uint32_t>(split), number, part};
    }
};

/// The quantities over a patch from which the channels are computed.
struct Snapshot {
    explicit Snapshot(const Patch& where);

    Patch patch;
    Field pressure;                    // Pa, at sea level
    Field pressure_anomaly;            // Pa, without events
    Field height_anomaly;              // m, at 200 hPa
    Field eastward, northward;         // m/s, winds of events
    Field water;                       // kg/m^2, precipitable
    Field rain;                        // m/s
    Field temperature_500;             // K
    Field temperature_200;             // K
    Field surface_temperature;         // K
    Field humidity;                    // kg/kg
    Field moisture_noise, fine_noise;  // variance 1
    std::vector<double> jet;           // m/s, eastward, of each row
};

/// Makes the weather without events: profiles along the latitude plus random waves.
Snapshot make_background(const Patch& patch, const Surface& surface, double season,
                         const SampleKey& key);

/// Adds the events to a snapshot, as far as they lie inside its patch.
void paint(const Weather& weather, Snapshot& snapshot);

/// The output for the inner pixels of a snapshot. Only central differences use its outermost rows
/// and columns.
struct FieldTarget {
    FieldLayout layout{};
    std::span<float> fields;
};

/// Computes the 16 channels: geostrophic winds, hypsometric heights, surface pressure and others.
void diagnose(const Snapshot& snapshot, const Surface& surface, const FieldTarget& target);

}  // namespace hpcai::data::climate
