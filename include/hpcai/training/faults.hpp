// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hpcai/comm/range.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/graph/parameter_store.hpp>
#include <hpcai/training/step_log.hpp>

/// Faults that a training meets on purpose, to see what becomes of it. Programs have none unless
/// they were built with -DHPCAI500_FAULTS=ON; their results are never rankable.
namespace hpcai::training {

inline constexpr const char* kFaultsVariable = "HPCAI500_INJECT";

/// One fault, on one rank of one group.
struct Fault {
    std::string kind;       // one of those of docs/RELIABILITY.md
    int group = 0;          // of the bagging
    int rank = 0;           // in the group
    std::int64_t step = 0;  // it strikes in the first step whose number, from 0, is no less

    bool operator==(const Fault&) const = default;
};

bool faults_are_built_in();

/// Returns the faults that `text`, the value of kFaultsVariable, names: "kind@group:rank:step",
/// several with commas; none where it is empty. Throws Error(usage) with the variable, what came
/// and what is legal; a program without faults throws it for any text.
std::vector<Fault> read_faults(std::string_view text);

/// Returns the faults that the process was started with.
std::vector<Fault> faults_of_environment();

/// Throws Error(usage) naming the first fault of a group or a rank that is not there.
void check_faults(const std::vector<Fault>& faults, int groups, int degree);

/// "kill@1:0:5, slow@0:1:2" or "none".
std::string describe_faults(const std::vector<Fault>& faults);

/// The group, rank and training that faults strike.
struct FaultSetup {
    const std::vector<Fault>& faults;  // of all groups
    int group = 0;
    int group_rank = 0;
    device::Device& device;
    graph::ParameterStore& store;
    StepLog* log = nullptr;  // of the steps; null: there is none
};

/// Brings the faults of one rank about while it trains.
class FaultInjector {
public:
    virtual ~FaultInjector() = default;

    /// Before each step, with its number from 0. It may not return, or throw.
    virtual void begin_step(std::int64_t step) = 0;

    /// What wants to be called with the elements of each bucket of gradients before they are
    /// summed, in every step; null where no rank of the group spoils gradients.
    virtual std::function<void(const comm::Range& elements)> before_sum() = 0;
};

/// Null where the rank's group has no faults. Device, store and log of `setup` outlive it.
std::unique_ptr<FaultInjector> make_fault_injector(const FaultSetup& setup);

/// What the loader threads of a rank are to call before they make a row of a batch, both from 0;
/// it may throw. Null where the rank's loaders have no faults.
std::function<void(std::uint32_t epoch, std::int64_t batch)> make_loader_fault(
    const std::vector<Fault>& faults, int group, int group_rank, std::int64_t steps_per_epoch);

}  // namespace hpcai::training
