// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loops.hpp"

/// The loops of int8 convolutions, once per instruction set as those in loops.cpp, with the same
/// bits in all of them. Tiles have 16 lanes of fp32.
namespace hpcai::device::cpu::HPCAI_ISA {

void largest_bits(const Tile& tile, const float* x, std::uint32_t* largest);
std::uint32_t largest_of_filter(const FilterRows& filter, std::uint32_t* of_channels);
void round_to_int8(const Tile& tile, const RoundTile& task);
void round_turned(const FilterRows& filter, const float* inverse_steps, std::int8_t* to);
void dither_to_int8(const Tile& tile, const RoundTile& task, const Dither& dither);
void scale_sums(const Tile& tile, const SumsTile& task);

}  // namespace hpcai::device::cpu::HPCAI_ISA
