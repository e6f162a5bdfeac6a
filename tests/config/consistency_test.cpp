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

TEST(Consistency, LeavesClassesToCountToLoad) {
    const std::string automatic = "workload.classes=auto";
    const std::vector<std::string> folders{"data.kind=image_folder", "data.path=a",
                                           "data.validation_path=b", automatic};
    EXPECT_EQ(load({{}, folders}).workload.classes, 0);
    EXPECT_EQ(message_of("", folders), "f.yaml: workload.classes: expected an integer, got 'auto'");
    EXPECT_THAT(override_message("workload.classes=0"), HasSubstr("auto or an integer from 1"));
    EXPECT_EQ(override_message(automatic),
              "--set workload.classes=auto: workload.classes: expected an integer, as data.kind is "
              "synthetic, got 'auto'");
}

/// Returns the reader's message about segmentation with these settings.
std::string segmentation_message(const std::string& workload, const std::string& bagging,
                                 const std::string& others) {
    return message_of(fmt::format(
        "workload: {{kind: climate_segmentation, model: segmentation_net, classes: 4, channels: 16"
        "{}}}\nbagging: {{{}}}\n{}\n",
        workload, bagging, others));
}

TEST(Consistency, RefusesSegmentationsThatCannotWork) {
    const std::string alone = "out_of_bag: false", data = "data: {kind: climate_synthetic}";
    EXPECT_EQ(segmentation_message(", image_width: 448", alone, data), "accepted");
    const auto expect_refused = [&](const std::string& bagging, const std::string& others,
                                    const std::string& message) {
        EXPECT_THAT(segmentation_message("", bagging, others), HasSubstr(message));
    };
    expect_refused("out_of_bag: true", data, "bagging.out_of_bag: expected false, as");
    expect_refused("out_of_bag: false, aggregation: wbf", data,
                   "bagging.aggregation: expected soft_vote or majority, as workload.kind is "
                   "climate_segmentation, got 'wbf'");
    expect_refused(alone, "data: {kind: voc, path: a}",
                   "data.kind: expected climate_synthetic or climate_hdf5, as workload.kind is "
                   "climate_segmentation");
    expect_refused(alone, data + "\ntraining: {label_smoothing: 0.1}",
                   "training.label_smoothing: expected 0, as workload.model is segmentation_net");
    expect_refused(alone, data + "\nparallel: {mode: pipeline, pipeline_degree: 2}",
                   "parallel.mode: expected data, as workload.model is segmentation_net");
    expect_refused(alone, data + "\nparallel: {micro_batches: 2}",
                   "parallel.micro_batches: expected 1, as workload.model is segmentation_net");
    expect_refused(alone, data + "\ndetector: {head_features: 32}",
                   "detector.head_features: expected 1024, as workload.model is segmentation_net");
    EXPECT_THAT(segmentation_message(", backbone_width: 32", alone, data),
                HasSubstr("workload.backbone_width: expected 64, as workload.model is "
                          "segmentation_net, got '32'"));
    EXPECT_THAT(message_of("workload: {kind: climate_segmentation}\n"),
                HasSubstr("workload.model: expected segmentation_net, as workload.kind is"));
}

}  // namespace
}  // namespace hpcai::config
