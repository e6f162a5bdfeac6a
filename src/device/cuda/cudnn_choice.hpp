// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cudnn_graphs.hpp"

namespace hpcai::device::cuda {

/// One graph with its chosen plan: the plan in Context::plans; else, with a device, the fastest of
/// the timed plans; else first_good().
class ChosenPlan {
public:
    ChosenPlan() = default;
    /// Times plans on the context's stream in temporary memory and adds the fastest to
    /// Context::plans. Throws Error(internal) when cuDNN has no plan.
    ChosenPlan(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context);

    std::size_t workspace_bytes() const;
    std::string name() const;
    /// Enqueues it; `workspace` has workspace_bytes() at a multiple of 256.
    void run(const Operands& operands, void* workspace) const;

private:
    void keep_only(const std::string& plan, std::unique_ptr<ConvolutionPlans> fresh);

    std::unique_ptr<ConvolutionPlans> plans_;
    int plan_ = -1;
};

/// The first plan that can be finalized and needs at most 1 GiB of workspace; else the finalizable
/// plan that needs least; or -1.
int first_good(ConvolutionPlans& plans);

/// Whether cuDNN has a plan for a graph. Can take seconds where Context::plans has no entry.
bool has_plan(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context);

/// The key of the plan of a graph in Context::plans.
std::string plan_key(const ConvolutionShape& shape, ConvolutionPass pass);

/// The operands that a pass reads, and those that it writes.
std::span<const Operand> read_by(ConvolutionPass pass);
std::span<const Operand> written_by(ConvolutionPass pass);
std::size_t bytes_of(Operand operand, const ConvolutionShape& shape);
DType type_of(Operand operand, ConvolutionPass pass, DType shape_type);

/// The largest difference between the results of two plans that counts as agreement: |a - b| / |b|
/// in the Euclidean norm. Both round to `dtype` once; tf32 factors have an error of 2^-11.
double agreement_bound(const ConvolutionShape& shape);

/// |a - b| / |b| of elements of `dtype` (f32, f16 or bf16); infinite when a number is not finite.
double relative_difference(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b);

/// Times the finalizable plans of a graph on random operands. A plan counts only if its results
/// agree with those of the first plan.
class PlanTimer {
public:
    PlanTimer(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context);
    ~PlanTimer();
    PlanTimer(const PlanTimer&) = delete;
    PlanTimer& operator=(const PlanTimer&) = delete;

    /// False when the device has too little free memory for the operands.
    bool ready() const;
    /// Median seconds of a finalized plan; none when it fails or disagrees.
    std::optional<double> seconds(const ConvolutionPlans& plans, int plan);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace hpcai::device::cuda
