// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "formula.hpp"

namespace hpcai::parity {

/// A tensor that is small enough to be committed: its length and its elements. Above 128 elements,
/// it has their count sketch instead: element i is added with sign s(i) to bucket b(i) of 128, both
/// from an integer hash. The sketch is linear, so the sketch of a difference is the difference of
/// the sketches. Its squared length estimates the squared length of the difference without bias,
/// with the relative deviation sqrt(2 / 128) = 1/8 (Charikar, Chen, Farach-Colton 2002).
class Fingerprint {
public:
    static constexpr std::size_t kBuckets = 128;

    /// `stored` is as in scripts/reference/resnet50_cases.py: the length first.
    explicit Fingerprint(std::vector<double> stored)
        : length_(stored.front()), values_(stored.begin() + 1, stored.end()) {}

    static Fingerprint of(std::span<const double> elements) {
        static const Hashes hashes("sketch");
        double squares = 0;
        for (const double element : elements) squares += element * element;
        std::vector<double> stored{std::sqrt(squares)};
        if (elements.size() <= kBuckets) {
            stored.insert(stored.end(), elements.begin(), elements.end());
            return Fingerprint(std::move(stored));
        }
        stored.resize(1 + kBuckets);
        for (std::size_t i = 0; i < elements.size(); ++i) {
            const std::uint32_t word = hashes(i);
            stored[1 + word % kBuckets] += (word & kBuckets) != 0 ? -elements[i] : elements[i];
        }
        return Fingerprint(std::move(stored));
    }

    double length() const { return length_; }

    /// Returns the estimated length of the difference, at least the difference of the lengths.
    double distance(const Fingerprint& other) const {
        if (values_.size() != other.values_.size()) return INFINITY;
        double squares = 0;
        for (std::size_t i = 0; i < values_.size(); ++i) {
            squares += (values_[i] - other.values_[i]) * (values_[i] - other.values_[i]);
        }
        return std::max(std::sqrt(squares), std::abs(length_ - other.length_));
    }

private:
    double length_;
    std::vector<double> values_;
};

}  // namespace hpcai::parity
