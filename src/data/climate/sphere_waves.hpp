// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/philox.hpp>

#include "grid.hpp"

namespace hpcai::data::climate {

/// The spectrum of a random field.
struct WaveSpectrum {
    int waves = 0;
    double lowest = 1;   // wavenumber, radians per Earth radius
    double highest = 1;  // wavenumber, radians per Earth radius
    double slope = 0;    // amplitudes are proportional to wavenumber^-slope
    int spacing = 1;     // pixels (1, 2 or 4) between the nodes of cubic interpolation
};

/// An isotropic random field on the sphere with mean 0 and variance 1 over all draws: a sum of
/// plane waves in space, evaluated on the sphere. It is smooth at 0 degrees east and at the poles.
class SphereWaves {
public:
    SphereWaves(const WaveSpectrum& spectrum, CounterStream random);
    /// Returns the field over the patch. The value of a pixel does not depend on the patch.
    Field evaluate(const Patch& patch) const;

private:
    struct Wave {
        float x, y, z;  // wave vector, turns per Earth radius
        float phase;    // turns
        float amplitude;
    };
    /// Returns the sum of waves at `nodes`, in rows and columns that are multiples of the spacing.
    Field sum(const Patch& nodes) const;

    int spacing_;
    std::vector<Wave> waves_;
};

}  // namespace hpcai::data::climate
