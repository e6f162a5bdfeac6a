// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/graph/parameter_store.hpp>
#include <hpcai/training/step_log.hpp>

/// Fault injection for tests, in programs built with -DHPCAI500_FAULTS=ON, which are never ranked.
namespace hpcai::training {

inline constexpr const char* kFaultsVariable = "HPCAI500_INJECT";

struct Fault {
    std::string kind;  // see docs/RELIABILITY.md
    int group = 0;
    int rank = 0;           // group rank
    std::int64_t step = 0;  // from 0; injected in this step or, if it does not run, in the next

    bool operator==(const Fault&) const = default;
};

bool faults_are_built_in();

/// Returns "hpcai500 0.1.0", or "hpcai500 0.1.0 with faults" if faults are built in.
std::string program_version();

/// Parses `text`, the value of kFaultsVariable: faults "kind@group:rank:step", separated by commas.
/// Throws Error(usage) with the variable, the text and the legal values. A program without
/// fault injection throws it for any nonempty text.
std::vector<Fault> read_faults(std::string_view text);

inline std::vector<Fault> faults_of_environment() {
    const char* const text = std::getenv(kFaultsVariable);
    return read_faults(text == nullptr ? "" : text);
}

/// Throws Error(usage) with the first fault beyond `groups` groups or `degree` ranks per group.
void check_faults(const std::vector<Fault>& faults, int groups, int degree);

/// Returns a text such as "kill@1:0:5, slow@0:1:2", or "none".
std::string describe_faults(const std::vector<Fault>& faults);

/// The rank to inject faults into, and the objects that its training uses.
struct FaultSetup {
    const std::vector<Fault>& faults;  // of all groups
    int group = 0;
    int group_rank = 0;
    device::Device& device;
    graph::ParameterStore& store;
    StepLog* log = nullptr;  // of the steps; may be null
};

/// Injects the faults of one rank during training.
class FaultInjector {
public:
    virtual ~FaultInjector() = default;

    /// Call it before each step, with its number from 0. It may throw or never return.
    virtual void begin_step(std::int64_t step) = 0;

    /// Returns a function that must be called with the elements of each gradient bucket before its
    /// all-reduce in every step. Null if no fault of the group changes gradients.
    virtual std::function<void(const comm::Range& elements)> before_all_reduce() = 0;
};

/// Returns null if the group has no faults. Device, store and log must outlive the object.
std::unique_ptr<FaultInjector> make_fault_injector(const FaultSetup& setup);

/// Returns a function that the rank's loader threads must call before they load a sample of a batch
/// (epoch and batch from 0). It may throw. Null if the rank's loaders have no faults.
std::function<void(std::uint32_t epoch, std::int64_t batch)> make_loader_fault(
    const std::vector<Fault>& faults, int group, int group_rank, std::int64_t steps_per_epoch);

}  // namespace hpcai::training
