// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "cudnn_graphs.hpp"

namespace hpcai::device::cuda {

class PlanTimer;

/// One cuDNN graph with its chosen plan: the plan in Context::plans if cuDNN still has it; else,
/// with a device and autotune, the fastest of the timed plans; else first_usable().
class ChosenPlan {
public:
    ChosenPlan() = default;
    /// If it times plans, it uses the context's stream and temporary memory and adds the fastest to
    /// Context::plans. Throws Error(internal) if cuDNN has no plan, or if a plan made the device
    /// unusable; Context::plans then excludes this plan from later runs (PlanCache::bar).
    ChosenPlan(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context);

    std::size_t workspace_bytes() const { return plan_ < 0 ? 0 : plans_->workspace_bytes(plan_); }
    std::string name() const { return plan_ < 0 ? "" : plans_->name(plan_); }
    /// Enqueues the plan; `workspace` has workspace_bytes() at a multiple of 256.
    void run(const Operands& operands, void* workspace) const {
        plans_->execute(plan_, operands, workspace);
    }

private:
    /// Returns the fastest plan with the most frequent result; -1 if no plan could be compared.
    int time_plans(const std::string& key, PlanTimer& timer, const Context& context);
    /// Finalizes the plan with this name; plan_ is -1 if that fails.
    void select(const std::string& plan);

    std::unique_ptr<ConvolutionPlans> plans_;
    int plan_ = -1;
};

/// Returns the first plan that is not barred, can be finalized and needs at most 1 GiB of
/// workspace; else the one with the smallest workspace; -1 if none can be finalized.
int first_usable(ConvolutionPlans& plans, const std::set<std::string>& barred);

/// Whether cuDNN has a plan for this pass. Can take seconds if Context::plans has no entry for it.
bool has_plan(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context);

/// The key in Context::plans under which the plan of a pass is stored.
std::string plan_key(const ConvolutionShape& shape, ConvolutionPass pass);

/// The operands that the cuDNN graph of a pass reads, and those that it writes.
std::span<const Operand> operands_read(ConvolutionPass pass);
std::span<const Operand> operands_written(ConvolutionPass pass);
/// The bytes and the type of an operand; `shape_type` is ConvolutionShape::dtype.
std::size_t bytes_of(Operand operand, const ConvolutionShape& shape);
DType type_of(Operand operand, DType shape_type);

/// The largest difference between the results of two plans that counts as agreement: |a - b| / |b|
/// in the Euclidean norm. Both results are rounded once; the error of tf32 factors is at most
/// 2^-10.
double agreement_bound(const ConvolutionShape& shape);

/// |a - b| / |b| of elements of `dtype` (f32, f16 or bf16); infinite when a number is not finite.
double relative_difference(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b);

/// Times finalized plans of a graph on random operands and compares their results.
class PlanTimer {
public:
    PlanTimer(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context);
    ~PlanTimer();
    PlanTimer(const PlanTimer&) = delete;
    PlanTimer& operator=(const PlanTimer&) = delete;

    /// The time and the result of a plan.
    struct Trial {
        double seconds = 0;  // median, or the only time
        // A number that is equal for plans whose results agree. Absent: not compared.
        std::optional<int> result;
    };

    /// False when the device has too little free memory for the operands.
    bool ready() const;
    /// Runs a finalized plan. A plan that takes more than `max_seconds` is timed once and not
    /// compared. Returns nothing if the plan fails or its results are not finite. Throws if the
    /// device is unusable afterwards.
    std::optional<Trial> run(const ConvolutionPlans& plans, int plan, double max_seconds);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace hpcai::device::cuda
