// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config_messages.hpp"

namespace hpcai::config {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(Consistency, RefusesWhatAKindOfDeviceDoesNotHave) {
    for (const char* precision : {"tf32", "fp16", "mixed"}) {
        EXPECT_EQ(message_of(
                      fmt::format("device: {{kind: cpu}}\ntraining: {{precision: {}}}", precision)),
                  fmt::format("f.yaml:2:23: training.precision: expected auto, fp32, bf16 or int8, "
                              "as device.kind is cpu (GPUs have tf32, fp16 and mixed), got '{}'",
                              precision));
        EXPECT_EQ(message_of(fmt::format("training: {{precision: {}}}", precision)), "accepted");
    }
    EXPECT_THAT(message_of("device: {kind: cuda}\ntraining: {precision: int8}"),
                HasSubstr("as device.kind is cuda (CPUs have int8), got 'int8'"));
    EXPECT_THAT(message_of("device: {kind: cpu}\ncommunication: {backend: nccl}"),
                HasSubstr("expected auto or mpi, as device.kind is cpu, got 'nccl'"));
    EXPECT_THAT(message_of("device: {kind: cpu}\ndata: {kind: image_folder, path: a, "
                           "validation_path: b, resident_mib: 9}"),
                HasSubstr("data.resident_mib: expected 0, as device.kind is cpu"));
    EXPECT_THAT(message_of("device: {kind: gpu}"), EndsWith("did you mean 'cuda'?"));
}

}  // namespace
}  // namespace hpcai::config
