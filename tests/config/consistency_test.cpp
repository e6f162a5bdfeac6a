// SPDX-License-Identifier: Apache-2.0
#include <tuple>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config_messages.hpp"

namespace hpcai::config {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

TEST(Consistency, RejectsWhatAKindOfDeviceDoesNotHave) {
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
    EXPECT_THAT(message_of("device: {kind: cpu}\ndata: {kind: image_folder, path: a, "
                           "validation_path: b, decoder: gpu}"),
                HasSubstr("data.decoder: expected cpu, as device.kind is cpu"));
    EXPECT_THAT(message_of("device: {kind: gpu}"), EndsWith("did you mean 'cuda'?"));
}

TEST(Consistency, RejectsKeysThatTheSourceOfTheSamplesIgnores) {
    EXPECT_EQ(message_of("data: {path: /mine/train}"),
              "f.yaml:1:14: data.path: expected '', as data.kind is synthetic (set data.kind to "
              "image_folder, voc, coco or climate_hdf5 to use this key), got '/mine/train'");
    const std::string folder = "data: {kind: image_folder, path: a, validation_path: b";
    EXPECT_EQ(message_of(folder + "}"), "accepted");
    for (const auto& [setting, key, value] :
         {std::tuple{"image_path: c", "image_path", "c"},
          {"validation_image_path: c", "validation_image_path", "c"},
          {"training_split: val", "training_split", "val"},
          {"validation_split: val", "validation_split", "val"},
          {"class_names: [fox]", "class_names", "[\"fox\"]"}}) {
        EXPECT_THAT(message_of(fmt::format("{}, {}}}", folder, setting)),
                    AllOf(HasSubstr(fmt::format("data.{}: expected ", key)),
                          HasSubstr(", as data.kind is image_folder (set data.kind to "),
                          EndsWith(fmt::format("got '{}'", value))));
    }
}

TEST(Consistency, RejectsSearchesWhoseTrialsAreImpossible) {
    const auto message = [](const std::string& search, const std::string& training = "",
                            const std::string& run = "") {
        return message_of(fmt::format(
            "run: {{name: a{}}}\n"
            "workload: {{kind: architecture_search, classes: 4, epochs: 8}}\n"
            "search: {{trials: 9, epochs: [4, 8]{}}}\n"
            "bagging: {{sampler: none, out_of_bag: false}}\n"
            "data: {{kind: image_folder, path: a, validation_path: b}}\n"
            "training: {{warmup_epochs: 0, learning_rate: 0.1, weight_decay: 1.0e-4{}}}\n",
            run, search, training));
    };
    EXPECT_EQ(message(""), "accepted");
    EXPECT_THAT(message(", max_flops_factor: 1"), HasSubstr("expected a number above 1"));
    EXPECT_THAT(message(", rate_factors: [1.5, 2]"), HasSubstr("range that contains 1"));
    EXPECT_THAT(message(", weight_decays: [0.001, 0.01]"),
                HasSubstr("training.weight_decay: expected a number in search.weight_decays"));
    EXPECT_THAT(message("", "", ", checkpoint_seconds: 9"),
                HasSubstr("run.checkpoint_seconds: expected 600, as workload.kind"));
    EXPECT_THAT(message("", "", ", checkpoint_steps: 9"),
                HasSubstr("run.checkpoint_steps: expected 0, as workload.kind"));
}

TEST(Consistency, LimitsTheEpochsOfASearch) {
    const auto message = [](int trials) {
        return message_of(fmt::format(
            "workload: {{kind: architecture_search, classes: 4, epochs: 8}}\n"
            "search: {{trials: {}, epochs: [4, 8]}}\n"
            "bagging: {{sampler: none, out_of_bag: false}}\n"
            "data: {{kind: image_folder, path: a, validation_path: b}}\n"
            "training: {{warmup_epochs: 0, learning_rate: 0.1, weight_decay: 1.0e-4}}\n",
            trials));
    };
    EXPECT_EQ(message(8192), "accepted");
    EXPECT_THAT(message(8193), HasSubstr("search.trials: expected at most 8192"));
}

TEST(Consistency, AcceptsDecodingByTheGpuForFoldersOfImagesOnly) {
    const std::string folder =
        "data: {kind: image_folder, path: a, validation_path: b, decoder: gpu";
    EXPECT_EQ(message_of(folder + "}"), "accepted");
    EXPECT_THAT(message_of("data: {decoder: gpu}"),
                HasSubstr("data.decoder: expected cpu, as data.kind is synthetic, got 'gpu'"));
    EXPECT_THAT(message_of(folder + ", resident_mib: 9}"),
                HasSubstr("data.resident_mib: expected 0, as data.decoder is gpu, got '9'"));
    EXPECT_THAT(message_of(folder + "}\nrun: {deterministic: true}"),
                HasSubstr("data.decoder: expected cpu, as run.deterministic is true"));
    EXPECT_THAT(message_of(folder + "}\nparallel: {micro_batches: 2}"),
                HasSubstr("data.decoder: expected cpu, as GPU decoding supports no micro-batches"));
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

TEST(Consistency, RejectsSegmentationsThatCannotWork) {
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

TEST(Consistency, RejectsSeedsThatRepetitionsWouldExceed) {
    EXPECT_EQ(message_of("run: {repeat: 3, seed: 9007199254740989}"), "accepted");
    EXPECT_THAT(message_of("run: {repeat: 3, seed: 9007199254740990}"),
                HasSubstr("run.seed: expected at most 9007199254740989, as run.repeat is 3"));
}

TEST(Consistency, RejectsTargetsWhosePenaltyOverflows) {
    EXPECT_EQ(message_of("workload: {target_quality: 0.01, penalty_exponent: 100}"), "accepted");
    EXPECT_EQ(message_of("workload: {target_quality: 1.0e-300, penalty_exponent: 0}"), "accepted");
    EXPECT_EQ(message_of("workload: {target_quality: 0.0099, penalty_exponent: 100}"),
              "f.yaml:1:28: workload.target_quality: expected a number x for which "
              "(1 / x)^workload.penalty_exponent is at most 1e200, got '0.0099'");
}

TEST(Consistency, RejectsPipelinesOfWhatHasNone) {
    EXPECT_EQ(message_of("parallel: {mode: pipeline, pipeline_degree: 2, data_degree: 2, "
                         "micro_batches: 4, schedule: gpipe}"),
              "accepted");
    EXPECT_EQ(
        message_of("parallel: {pipeline_degree: 2}"),
        "f.yaml:1:29: parallel.pipeline_degree: expected auto or 1, as parallel.mode is data, "
        "got '2'");
    EXPECT_EQ(message_of("parallel: {mode: mixed, model_degree: 2, pipeline_degree: 2}"),
              "accepted");
    EXPECT_EQ(
        message_of("parallel: {mode: model, model_degree: 4}\ndevice: {kind: cuda}"),
        "f.yaml:1:39: parallel.model_degree: expected 1, as device.kind is cuda, which has no "
        "model parallelism yet, got '4'");
    EXPECT_EQ(message_of("parallel: {micro_batches: 2, schedule: gpipe}"),
              "f.yaml:1:40: parallel.schedule: expected 1f1b, as parallel.mode is data, got "
              "'gpipe'");
    EXPECT_THAT(message_of("parallel: {mode: model, schedule: gpipe}"),
                HasSubstr("parallel.schedule: expected 1f1b, as parallel.mode is model"));
    EXPECT_THAT(message_of("parallel: {mode: model, pipeline_degree: 2}"),
                HasSubstr("pipeline_degree: expected auto or 1, as parallel.mode is model"));
    EXPECT_THAT(message_of("parallel: {mode: pipeline, model_degree: 2}"),
                HasSubstr("model_degree: expected auto or 1, as parallel.mode is pipeline"));
    const std::string detector =
        "workload: {kind: object_detection, model: faster_rcnn_r50_fpn}\n"
        "bagging: {aggregation: wbf, out_of_bag: false}\n"
        "data: {kind: voc, path: a, random_area_minimum: 0.08}\n";
    EXPECT_THAT(message_of(detector + "parallel: {mode: pipeline}"),
                HasSubstr("faster_rcnn_r50_fpn, which has neither pipeline nor model parallelism"));
    EXPECT_THAT(message_of(detector + "parallel: {micro_batches: 2}"),
                HasSubstr("parallel.micro_batches: expected 1, as workload.model is"));
    EXPECT_THAT(
        message_of("parallel: {micro_batches: 2}\ndata: {kind: image_folder, path: a, "
                   "validation_path: b, resident_mib: 9}"),
        HasSubstr("data.resident_mib: expected 0, as resident images support no micro-batches"));
}

TEST(Consistency, RejectsSearchesThatCannotWork) {
    const auto message = [](const std::string& search, const std::string& others = "") {
        return message_of(
            fmt::format("workload: {{kind: architecture_search, epochs: 2}}\n"
                        "bagging: {{sampler: none, out_of_bag: false}}\n"
                        "data: {{kind: image_folder, path: a, validation_path: b}}\n"
                        "training: {{warmup_epochs: 0}}\nsearch: {{{}}}\n{}",
                        search, others));
    };
    EXPECT_EQ(message("trials: 3, epochs: [1, 2]"), "accepted");
    EXPECT_EQ(message("duration_seconds: 9, epochs: [1, 2]"), "accepted");
    EXPECT_THAT(message("epochs: [1, 2]"), HasSubstr("search.trials: expected 1 or more"));
    EXPECT_THAT(message("trials: 3, epochs: [1, 3]"),
                HasSubstr("workload.epochs: expected the largest of search.epochs"));
    EXPECT_THAT(message("trials: 3, epochs: [2], root_blocks: [1, 1]"),
                HasSubstr("search.root_blocks: expected 4 values"));
    EXPECT_THAT(message("trials: 3, epochs: [2], rate_factors: [2, 1]"),
                HasSubstr("search.rate_factors: expected two numbers in ascending order"));
    EXPECT_THAT(message("trials: 3, epochs: [2], history: recorded"),
                HasSubstr("search.recorded: expected a result directory"));
    EXPECT_THAT(message("trials: 3, epochs: [2], recorded: there"),
                HasSubstr("search.recorded: expected an empty text"));
    EXPECT_THAT(
        message("trials: 3, epochs: [2]", "run: {level: free}"),
        HasSubstr("run.level: expected custom or aiperf, as workload.kind is architecture_search"));
    EXPECT_EQ(message("trials: 3, epochs: [2]", "run: {level: aiperf}"), "accepted");
    EXPECT_THAT(message_of("run: {level: aiperf}"),
                HasSubstr("run.level: expected another level, as workload.kind is image_class"));
    EXPECT_THAT(message_of("search: {trials: 3}"),
                HasSubstr("search.trials: expected 0, as workload.kind is image_classification"));
}

}  // namespace
}  // namespace hpcai::config
