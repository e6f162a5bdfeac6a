// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include <hpcai/ops/flops.hpp>
#include <hpcai/ops/operation.hpp>

#include "support/largest_error.hpp"
#include "support/reference_json.hpp"

namespace hpcai::ops {
namespace {

using nlohmann::json;

/// An operation on one image, as tests/data/reference/metrics_aiperf.json describes it.
Operation operation_of(const json& wanted) {
    const std::string name = wanted["operation"];
    const std::int64_t size = wanted.value("size", 1), channels = wanted.value("channels", 1);
    const Shape image{1, size, size, channels};
    if (name == "convolution") {
        return Convolution{image, wanted["filters"], wanted["kernel"], wanted["stride"],
                           wanted["padding"]};
    }
    if (name == "linear") return Linear{{1, channels}, wanted["features"]};
    if (name == "softmax_cross_entropy") return SoftmaxCrossEntropy{{1, wanted["features"]}};
    if (name == "batch_norm") return BatchNorm{.input = image};
    if (name == "relu") return Relu{image};
    if (name == "add") return Add{image};
    if (name == "max_pool") return MaxPool{image, wanted["kernel"], wanted["stride"], 0};
    return GlobalAveragePool{image};
}

TEST(AiPerf, CountsWhatAiPerfsOwnProfilerCounts) {
    tests::LargestError error("FLOPs of an operation against the profiler of AIPerf", 0);
    const json reference = tests::read_reference_json("metrics_aiperf.json");
    for (const json& wanted : reference["cases"]) {
        const Operation operation = operation_of(wanted);
        ASSERT_EQ(name_of(operation), wanted["operation"].get<std::string>());
        const Flops got = flops(operation, Ledger::aiperf, wanted.value("first", false));
        error.add(
            std::abs(static_cast<double>(got.forward - wanted["forward"].get<std::int64_t>())),
            "forward: " + wanted.dump());
        error.add(std::abs(static_cast<double>(got.training() - got.forward -
                                               wanted["backward"].get<std::int64_t>())),
                  "backward: " + wanted.dump());
    }
}

}  // namespace
}  // namespace hpcai::ops
