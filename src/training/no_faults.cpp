// SPDX-License-Identifier: Apache-2.0
#include <hpcai/training/faults.hpp>

namespace hpcai::training {

bool faults_are_built_in() {
    return false;
}

std::vector<Fault> read_faults(std::string_view text) {
    require(text.empty(), ExitCode::usage,
            "{}: expected nothing, because only a program that was built with "
            "-DHPCAI500_FAULTS=ON injects faults, got '{}'",
            kFaultsVariable, text);
    return {};
}

void check_faults(const std::vector<Fault>&, int, int) {}

std::string describe_faults(const std::vector<Fault>&) {
    return "none";
}

std::unique_ptr<FaultInjector> make_fault_injector(const FaultSetup&) {
    return nullptr;
}

std::function<void(std::uint32_t, std::int64_t)> make_loader_fault(const std::vector<Fault>&, int,
                                                                   int, std::int64_t) {
    return {};
}

}  // namespace hpcai::training
