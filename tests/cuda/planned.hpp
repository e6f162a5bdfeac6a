// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "device/cuda/context.hpp"
#include "device/cuda/plan_cache.hpp"

/// A device for tests of plans, which is described but absent.
namespace hpcai::device::cuda {

inline std::filesystem::path source_folder() {
    const char* folder = std::getenv("HPCAI500_SOURCE_DIR");
    return folder != nullptr ? folder : ".";
}

/// Returns an H200 from a file with the answers to cuDNN's queries of a device.
inline Context described_h200() {
    std::ifstream file(source_folder() / "tests/data/reference/h200_device_properties.json");
    static PlanCache no_plans("", {});
    Context context{.plans = &no_plans};
    context.properties.assign(std::istreambuf_iterator<char>(file), {});
    return context;
}

}  // namespace hpcai::device::cuda
