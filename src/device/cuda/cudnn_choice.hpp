// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "cudnn_graphs.hpp"

namespace hpcai::device::cuda {

/// One cuDNN graph with its chosen plan: the plan in Context::plans if cuDNN still has it; else,
/// with a device and autotune, the fastest of the timed plans; else first_usable().
class ChosenPlan {
public:
    ChosenPlan() = default;
    /// Timing uses the context's stream and temporary memory, and adds the fastest plan to
    /// Context::plans. Throws Error(internal) if cuDNN has no plan, or if a plan made the device
    /// unusable; Context::plans then excludes this plan from later runs (PlanCache::bar).
    ChosenPlan(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context);

    std::size_t workspace_bytes() const { return plan_ < 0 ? 0 : plans_->workspace_bytes(plan_); }
    std::string name() const { return plan_ < 0 ? "" : plans_->name(plan_); }
    /// Enqueues the plan; `workspace` has workspace_bytes(), aligned to 256 bytes.
    void run(const Operands& operands, void* workspace) const {
        plans_->execute(plan_, operands, workspace);
    }

private:
    /// Finalizes a plan. Sets plan_ to its index, or to -1 if cuDNN does not list or finalize it.
    void select(const std::string& plan_name);

    std::unique_ptr<ConvolutionPlans> plans_;
    int plan_ = -1;
};

inline constexpr std::size_t kMaxPlanWorkspaceBytes = std::size_t{1} << 30;

/// Returns the index of the first plan that is not barred, can be finalized and needs at most
/// kMaxPlanWorkspaceBytes; else, without this limit, the one with the smallest workspace; else -1.
int first_usable(ConvolutionPlans& plans, const std::set<std::string>& barred);

/// Whether cuDNN has a plan that is not barred. Can take seconds unless Context::plans has one.
bool has_plan(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context);

/// The key in Context::plans under which the plan of a pass is stored.
std::string plan_key(const ConvolutionShape& shape, ConvolutionPass pass);

std::size_t bytes_of(Operand operand, const ConvolutionShape& shape);
/// The type of an operand; `shape_type` is ConvolutionShape::dtype.
DType type_of(Operand operand, DType shape_type);

/// |a - b| / |b| in the Euclidean norm, for f32, f16 or bf16; infinite if a number is not finite.
double relative_difference(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b);

/// Times plans of a graph on random operands in temporary memory, compares their results and adds
/// the times to Context::plans. Returns the fastest of the plans with the most frequent result; -1
/// if no plan could be compared, for example for lack of memory. Throws if the device is unusable.
int find_fastest(ConvolutionPlans& plans, const ConvolutionShape& shape, ConvolutionPass pass,
                 const Context& context);

}  // namespace hpcai::device::cuda
