// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/base/philox.hpp>

#include "grid.hpp"

namespace hpcai::data::climate {

/// Which waves a random field is made of.
struct WaveSpectrum {
    int waves = 0;
    double lowest = 1;   // wavenumber, radians per Earth radius
    double highest = 1;  // likewise
    double slope = 0;    // the amplitude falls as wavenumber^-slope
    int spacing = 1;     // pixels between those where waves are summed; cubic between: 1, 2 or 4
};

/// An isotropic random field on the sphere, mean 0 and variance 1 over all draws: a sum of plane
/// waves in space, taken where they cut the sphere, so that it has neither seam nor pole.
class SphereWaves {
public:
    SphereWaves(const WaveSpectrum& spectrum, CounterStream random);
    /// The field over the patch. A pixel's value does not depend on the patch it is in.
    Field evaluate(const Patch& patch) const;

private:
    struct Wave {
        float x, y, z;  // wave vector, turns per Earth radius
        float phase;    // turns
        float amplitude;
    };
    /// Values where rows and columns of the grid are multiples of the spacing.
    Field sum(const Patch& nodes) const;

    int spacing_;
    std::vector<Wave> waves_;
};

}  // namespace hpcai::data::climate
