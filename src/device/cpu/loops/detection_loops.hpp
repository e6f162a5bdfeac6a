// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loops.hpp"

/// The loops of feature pyramids and boxes, once per instruction set as those in loops.cpp.
namespace hpcai::device::cpu::HPCAI_ISA {

void enlarge_add(const Tile& tile, const EnlargedRow& task);
void shrink_sum(const Tile& tile, const ShrunkRow& task);
void gather_region(const Tile& tile, const void* x, const RegionBins& region, float* bins);
void scatter_region(const Tile& tile, const float* bins, const RegionBins& region, float* dx);
bool overlaps(const BoxColumns& boxes, std::int64_t count, const ReferenceBox& box);

}  // namespace hpcai::device::cpu::HPCAI_ISA
