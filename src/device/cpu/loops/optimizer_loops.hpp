// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loops.hpp"

/// The loops of optimizers, once per instruction set as those in loops.cpp.
namespace hpcai::device::cpu::HPCAI_ISA {

void sgd(const StepSpan& span, const SgdCoefficients& by);
void momentum_step(const StepSpan& span, const MomentumCoefficients& by);
void adam(const StepSpan& span, const AdamCoefficients& by);
void adagrad(const StepSpan& span, const AdaGradCoefficients& by);
SquareSums square_sums(const StepSpan& span);
SquareSums lamb_moments(const StepSpan& span, const LambCoefficients& by);
void lamb_step(const StepSpan& span, const LambCoefficients& by, float rate);

}  // namespace hpcai::device::cpu::HPCAI_ISA
