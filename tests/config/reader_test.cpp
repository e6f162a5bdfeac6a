// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/config/keys.hpp>

#include "config/config_messages.hpp"

namespace hpcai::config {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Reader, ReadsEveryTypeOfValue) {
    const Config config = parse(
        "run: {name: a-1, seed: 9007199254740991, level: free}\n"
        "workload:\n  model: resnet50_v1\n"
        "bagging:\n  M: 4\n  P_degree: auto\n"
        "data:\n  kind: image_folder\n  path: \"a # b\"\n  validation_path: b\n  mean:\n    - "
        "0.5\n    - .25\n    - 1\n"
        "training:\n  learning_rate: 1e-2\n  schedule_epochs: []\n  nesterov: true\n",
        "f.yaml", {});
    EXPECT_EQ(config.run.name, "a-1");
    EXPECT_EQ(config.run.seed, 9007199254740991u);
    EXPECT_TRUE(config.training.nesterov);
    EXPECT_EQ(config.run.level, Level::free);
    EXPECT_EQ(config.workload.model, Model::resnet50_v1);
    EXPECT_EQ(config.bagging.groups, 4);
    EXPECT_EQ(config.bagging.degree, std::nullopt);
    EXPECT_EQ(config.data.path, "a # b");
    EXPECT_THAT(config.data.mean, ElementsAre(0.5, 0.25, 1.0));
    EXPECT_EQ(config.training.learning_rate, 0.01);
    EXPECT_TRUE(config.training.schedule_epochs.empty());
    EXPECT_EQ(config.training.batch_size, TrainingConfig{}.batch_size);
}

TEST(Reader, NamesTheNearestKeyForAnUnknownOne) {
    EXPECT_EQ(message_of("bagging:\n  P_degre: 4\n"),
              "f.yaml:2:3: bagging.P_degre: expected a key of bagging, got 'P_degre'; did you mean "
              "'P_degree'?");
    EXPECT_EQ(message_of("baging:\n  M: 4\n"),
              "f.yaml:1:1: baging: expected a section, got 'baging'; did you mean 'bagging'?");
    EXPECT_THAT(message_of("training:\n  epochs: 4\n"), EndsWith("mean 'workload.epochs'?"));
    EXPECT_THAT(message_of("epochs: 4\n"), EndsWith("mean 'workload.epochs'?"));
    EXPECT_EQ(message_of("device:\n  colour: red\n"),
              "f.yaml:2:3: device.colour: expected a key of device (kind, threads, layout, "
              "autotune, plan_cache, recording), got 'colour'");
    EXPECT_THAT(message_of("xyz: 4\n"),
                HasSubstr("(run, submission, workload, detector, search, bagging, parallel, "));
}

TEST(Reader, RejectsValuesOfAnotherType) {
    EXPECT_EQ(message_of("training:\n  batch_size: 3.7\n"),
              "f.yaml:2:15: training.batch_size: expected an integer from 1 to "
              "1048576, got '3.7'");
    EXPECT_EQ(message_of("training:\n  batch_size: 010\n"),
              "f.yaml:2:15: training.batch_size: expected an integer from 1 to "
              "1048576, got '010' (a number has no leading zeros)");
    EXPECT_EQ(message_of("training:\n  batch_size: \"32\"\n"),
              "f.yaml:2:15: training.batch_size: expected an integer from 1 to "
              "1048576, got '32' (a quoted value is a string)");
    for (const char* text : {"0x10", "0o10", "1_000", "1e3", "+4", "\"4\"", "~", "", "many", "[4]",
                             "{a: 4}", "auto", "true", "99999999999999999999", "-007"}) {
        EXPECT_THAT(message_of(fmt::format("training:\n  batch_size: {}\n", text)),
                    HasSubstr("training.batch_size: expected an integer"))
            << text;
    }
    for (const char* text : {".nan", ".inf", "-.inf", "nan", "inf", "-inf", "1e400", "00.5", "1,5",
                             "0x1p3", "1e", "--1", "'0.1'", "1.0.0"}) {
        EXPECT_THAT(message_of(fmt::format("training:\n  learning_rate: {}\n", text)),
                    HasSubstr("training.learning_rate: expected a number"))
            << text;
    }
    for (const char* text : {"yes", "on", "True", "1", "\"true\"", ""}) {
        EXPECT_THAT(message_of(fmt::format("training:\n  nesterov: {}\n", text)),
                    HasSubstr("training.nesterov: expected true or false, got"))
            << text;
    }
    EXPECT_THAT(message_of("data:\n  mean: 0.5\n"), HasSubstr("expected a list"));
    EXPECT_THAT(message_of("data:\n  mean: [0.5, x, 0.5]\n"), StartsWith("f.yaml:2:15: data.mean"));
    EXPECT_THAT(message_of("training:\n  schedule_epochs: [1.5]\n"), HasSubstr("got '1.5'"));
    EXPECT_THAT(message_of("run:\n  output:\n"), EndsWith("expected a string, got nothing"));
    EXPECT_THAT(
        message_of("training:\n  precision: fp23\n"),
        EndsWith("expected one of auto, fp32, tf32, fp16, mixed, bf16, int8, got 'fp23'; did you "
                 "mean 'fp32'?"));
    EXPECT_THAT(message_of("run:\n  output: \"a\\x1b[31m\"\n"),
                EndsWith("run.output: expected text, got the control character '\\x1b'"));
    for (const std::string& name :
         {std::string("../x"), std::string(".a"), std::string("-a"), std::string("a/b"),
          std::string("\"\""), std::string(65, 'a')}) {
        EXPECT_THAT(message_of(fmt::format("run: {{name: {}}}", name)),
                    HasSubstr("run.name: expected 1 to 64 letters"))
            << name;
    }
    EXPECT_EQ(message_of(fmt::format("run: {{name: {}}}", std::string(64, 'a'))), "accepted");
}

/// One line of YAML that sets `key` to `text`.
std::string line(const Key& key, const std::string& text) {
    const bool list = key.type == KeyType::integer_list || key.type == KeyType::number_list;
    return fmt::format("{}: {{{}: {}}}", key.section, key.name,
                       list ? fmt::format("[{}]", text) : text);
}

TEST(Reader, RejectsNumbersJustOutsideEveryRangeOfTheTable) {
    int limits = 0;
    for (const Key& key : keys()) {
        const bool integer = key.type == KeyType::integer || key.type == KeyType::integer_list;
        const bool number = key.type == KeyType::number || key.type == KeyType::number_list;
        if (!integer && !number) continue;
        const double step = integer ? 1 : 1e-9;
        const Bounds& bounds = key.bounds;
        const double below = bounds.minimum - (bounds.minimum_is_legal ? step : 0);
        const double over = bounds.maximum + (bounds.maximum_is_legal ? step : 0);
        for (const double value : {below, over}) {
            const std::string text = integer ? fmt::format("{}", static_cast<std::int64_t>(value))
                                             : fmt::format("{:.12f}", value);
            EXPECT_THAT(message_of(line(key, text)), HasSubstr(key.full_name() + ": expected"));
            ++limits;
        }
    }
    EXPECT_GT(limits, 60);
}

TEST(Reader, RejectsSettingsThatContradict) {
    EXPECT_EQ(message_of("run: {trace: true, measure_phases: false}"),
              "f.yaml:1:14: run.trace: expected false, as run.measure_phases is false, got 'true'");
    EXPECT_THAT(message_of("run: {level: free, keep_weights: false}"), HasSubstr("run.level is f"));
    EXPECT_EQ(message_of("workload:\n  channels: 16\n"),
              "f.yaml: data.mean: expected 16 values, one for each of workload.channels, got "
              "'[0.485, 0.456, 0.406]', the default");
    EXPECT_EQ(message_of("data:\n  standard_deviation: [0.5]\n"),
              "f.yaml:2:23: data.standard_deviation: expected 3 values, one for each of "
              "workload.channels, got '[0.5]'");
    EXPECT_THAT(message_of("data: {kind: image_folder}"),
                StartsWith("f.yaml: data.path: expected"));
    EXPECT_THAT(message_of("data: {kind: image_folder, path: a}"),
                StartsWith("f.yaml: data.validation_path: expected a folder"));
    EXPECT_THAT(message_of("data: {kind: image_folder, path: a, validation_path: b, mean: [0.5], "
                           "standard_deviation: [0.5]}\nworkload: {channels: 1}"),
                StartsWith("f.yaml:2:22: workload.channels: expected 3"));
    EXPECT_THAT(message_of("data: {resident_mib: 1}"),
                HasSubstr("data.resident_mib: expected 0, as data.kind is synthetic, got '1'"));
    EXPECT_THAT(
        message_of("workload: {kind: object_detection, model: faster_rcnn_r50_fpn}\n"
                   "bagging: {aggregation: wbf, out_of_bag: false}\n"
                   "data: {kind: voc, path: a, random_area_minimum: 0.5}"),
        HasSubstr("data.random_area_minimum: expected 0.08, as nothing is cropped if data.kind "
                  "is voc, got '0.5'"));
    EXPECT_THAT(message_of("data: {synthetic_samples: 255}"),
                HasSubstr("data.synthetic_samples: expected at least training.batch_size"));
    EXPECT_THAT(message_of("training: {batch_size: 30, batch_norm_samples: 16}"),
                HasSubstr("expected a divisor of training.batch_size, which is 30, got '16'"));
    EXPECT_THAT(message_of("training: {schedule_epochs: [30, 30]}"), HasSubstr("increasing"));
    EXPECT_THAT(
        message_of("workload: {epochs: 4}"),
        HasSubstr("training.warmup_epochs: expected less than workload.epochs, which is 4"));
    EXPECT_THAT(message_of("bagging: {P_degree: 3}"),
                HasSubstr("training.batch_size: expected a multiple of bagging.P_degree"));
    EXPECT_THAT(message_of("training: {nesterov: true, momentum: 0}"),
                HasSubstr("training.momentum: expected a number above 0"));
}

TEST(Reader, RejectsSettingsThatTheOptimizerDoesNotUse) {
    EXPECT_EQ(message_of("training:\n  optimizer: adam\n  momentum: 0.5\n"),
              "f.yaml:3:13: training.momentum: expected 0.9, as training.optimizer is adam, got "
              "'0.5'");
    const std::string with_momentum = "momentum: 0.5,nesterov: true,momentum_correction: true";
    const std::string with_betas = "beta1: 0.5,beta2: 0.5";
    const std::string of_lars = "trust_coefficient: 0.5", of_others = "epsilon: 0.5";
    const std::map<std::string, std::vector<std::string>> useless{
        {"sgd", {with_betas, of_lars, of_others}},
        {"lars", {with_betas}},
        {"lamb", {with_momentum, of_lars}},
        {"adam", {with_momentum, of_lars}},
        {"adamw", {with_momentum, of_lars}},
        {"adagrad", {with_momentum, with_betas, of_lars}}};
    for (const auto& [optimizer, groups] : useless) {
        for (const std::string& group : {with_momentum, with_betas, of_lars, of_others}) {
            const bool is_useless = std::ranges::count(groups, group) > 0;
            std::istringstream settings(group);
            for (std::string one; std::getline(settings, one, ',');) {
                const std::string yaml = "training: {optimizer: " + optimizer + ", " + one + "}\n";
                EXPECT_THAT(
                    message_of(yaml),
                    HasSubstr(is_useless ? "as training.optimizer is " + optimizer : "accepted"));
            }
        }
    }
}

TEST(Reader, RejectsAnEpsilonThatWouldDivideZeroByZero) {
    for (const std::string optimizer : {"lamb", "adam", "adamw", "adagrad"}) {
        for (const std::string epsilon : {"0", "1e-46"}) {
            EXPECT_THAT(
                message_of("training: {optimizer: " + optimizer + ", epsilon: " + epsilon + "}\n"),
                HasSubstr("training.epsilon: expected a number of at least"));
        }
    }
    EXPECT_EQ(message_of("training: {optimizer: lars, epsilon: 0}\n"), "accepted");
}

TEST(Reader, RejectsSettingsThatTheAllReduceDoesNotUse) {
    EXPECT_THAT(message_of("communication: {torus_columns: 2}\n"),
                HasSubstr("communication.torus_columns: expected auto, as communication.algorithm "
                          "is all_reduce"));
    EXPECT_THAT(message_of("communication: {algorithm: torus_2d, ranks_per_node: 2}\n"),
                HasSubstr("communication.ranks_per_node: expected auto, as communication.algorithm "
                          "is torus_2d"));
    EXPECT_THAT(message_of("communication: {algorithm: native, precision: bf16}\n"),
                HasSubstr("communication.precision: expected fp32, as communication.algorithm is "
                          "native"));
    EXPECT_THAT(message_of("communication: {algorithm: native}\nrun: {deterministic: true}\n"),
                HasSubstr("communication.algorithm: expected all_reduce, torus_2d or hierarchical, "
                          "as run.deterministic is true"));
    EXPECT_EQ(message_of("communication: {algorithm: native}\n"), "accepted");
    EXPECT_EQ(message_of("communication: {algorithm: torus_2d, torus_columns: 2}\n"), "accepted");
    EXPECT_EQ(message_of("communication: {algorithm: hierarchical, ranks_per_node: 2}\n"),
              "accepted");
}

TEST(Reader, TakesNumbersAndBooleansThatMayBeAuto) {
    const TrainingConfig training =
        parse("training: {optimizer: lars, epsilon: 0.5, momentum_correction: false}\n", "f.yaml",
              {})
            .training;
    EXPECT_EQ(training.epsilon, 0.5);
    EXPECT_EQ(training.momentum_correction, false);
    const TrainingConfig automatic =
        parse("training: {epsilon: auto, momentum_correction: auto}\n", "f.yaml", {}).training;
    EXPECT_FALSE(automatic.epsilon || automatic.momentum_correction);
    EXPECT_THAT(message_of("training: {momentum_correction: 1}\n"),
                HasSubstr("expected auto, true or false, got '1'"));
    EXPECT_THAT(message_of("training: {epsilon: none}\n"),
                HasSubstr("expected auto or a number from 0 to 1, got 'none'"));
}

/// The reader's message about a detector with these settings.
std::string detector_message(const std::string& data, const std::string& workload = "",
                             const std::string& detector = "") {
    const bool is_weather = data.starts_with("kind: climate");
    return message_of(
        fmt::format("workload: {{kind: {}, model: faster_rcnn_r50_fpn, {}}}\ndetector: {{{}}}\n"
                    "bagging: {{aggregation: wbf, out_of_bag: false}}\ndata: {{{}}}\n",
                    is_weather ? "extreme_weather" : "object_detection", workload, detector, data));
}

TEST(Reader, RejectsDataThatDoNotFitTheWorkload) {
    EXPECT_THAT(message_of("data: {kind: voc, path: a}"),
                HasSubstr("data.kind: expected synthetic or image_folder, as workload.kind is "
                          "image_classification, got 'voc'"));
    EXPECT_THAT(detector_message("kind: synthetic"),
                HasSubstr("data.kind: expected voc or coco, as workload.kind is object_detection"));
    EXPECT_EQ(detector_message("kind: voc, path: a, class_names: [WBC, \"x y\"]"), "accepted");
    EXPECT_THAT(detector_message("kind: voc"), HasSubstr("data.path: expected a folder"));
    EXPECT_THAT(detector_message("kind: voc, path: a, class_names: WBC"),
                HasSubstr("data.class_names: expected a list [a, b, ...] of strings, got 'WBC'"));
    EXPECT_THAT(detector_message("kind: voc, path: a, class_names: [[a]]"),
                HasSubstr("data.class_names: expected"));
    EXPECT_THAT(detector_message("kind: coco, path: a, validation_path: b, image_path: c"),
                HasSubstr("data.validation_image_path: expected a folder, as data.kind is coco"));
    EXPECT_THAT(detector_message("kind: voc, path: a, mean: [0, 0], standard_deviation: [1, 1]",
                                 "channels: 2"),
                HasSubstr("workload.channels: expected 3, as data.kind is voc"));
    const std::string climate = "kind: climate_synthetic";
    EXPECT_EQ(detector_message(climate, "channels: 16, classes: 4"), "accepted");
    EXPECT_THAT(detector_message(climate, "classes: 4"), HasSubstr("workload.channels: exp"));
    EXPECT_THAT(detector_message(climate, "channels: 16"), HasSubstr("workload.classes: exp"));
    EXPECT_THAT(detector_message(climate + ", max_boxes: 14", "channels: 16, classes: 4"),
                HasSubstr("data.max_boxes: expected 15 or more"));
    EXPECT_THAT(detector_message("kind: climate_hdf5, path: a", "channels: 16, classes: 4"),
                HasSubstr("data.validation_path: expected a file or folder"));
    EXPECT_THAT(message_of("workload: {kind: object_detection, model: faster_rcnn_r50_fpn, "
                           "classes: 4, channels: 16}\n"
                           "bagging: {aggregation: wbf, out_of_bag: false}\n"
                           "data: {kind: climate_synthetic}\n"),
                HasSubstr("data.kind: expected voc or coco, as workload.kind is object_detection"));
}

TEST(Reader, RejectsDetectorsThatCannotWork) {
    const std::string voc = "kind: voc, path: a";
    EXPECT_EQ(detector_message(voc, "", "anchor_ratios: [1]"), "accepted");
    EXPECT_THAT(detector_message(voc, "", "anchor_ratios: []"),
                HasSubstr("detector.anchor_ratios: expected one value or more"));
    EXPECT_THAT(detector_message(voc, "", "anchor_sizes: [1, 32, 64, 128, 256]"),
                HasSubstr("detector.anchor_sizes: expected sizes whose anchors have sides"));
    EXPECT_THAT(detector_message(voc, "", "anchor_sizes: [32, 64]"),
                HasSubstr("detector.anchor_sizes: expected 5 values"));
    EXPECT_THAT(detector_message(voc, "", "normalization: frozen_batch"),
                HasSubstr("training.initial_weights: expected a file"));
    EXPECT_THAT(detector_message(voc, "", "trained_stages: 3"),
                HasSubstr("detector.trained_stages: expected 5"));
    EXPECT_THAT(detector_message(voc, "", "region_samples: 3"),
                HasSubstr("detector.region_samples: expected an integer from 4"));
    EXPECT_THAT(detector_message(voc, "backbone_width: 48", "normalization: group"),
                HasSubstr("workload.backbone_width: expected a multiple of 32"));
    EXPECT_THAT(
        detector_message(voc, "", "normalization: group}\ntraining: {batch_norm_samples: 8"),
        HasSubstr("training.batch_norm_samples: expected auto, as detector.normalization is not"));
    EXPECT_EQ(message_of("workload: {kind: object_detection, model: faster_rcnn_r50_fpn}\n"
                         "data: {kind: voc, path: a}\n"
                         "bagging: {aggregation: wbf, out_of_bag: true}\n"),
              "f.yaml:3:41: bagging.out_of_bag: expected false, as workload.kind is "
              "object_detection, got 'true', the default");
}

TEST(Reader, AppliesOverridesWithTheSameChecks) {
    const Config config =
        parse("training:\n  batch_size: 64\n", "f.yaml",
              {"training.batch_size=32", "bagging.M=auto", "data.mean=[0.1, 0.2, 0.3]",
               "run.output=a: b # c", "data.kind=image_folder", "data.path=x=y",
               "data.validation_path=b"});
    EXPECT_EQ(config.training.batch_size, 32);
    EXPECT_THAT(config.data.mean, ElementsAre(0.1, 0.2, 0.3));
    EXPECT_EQ(config.run.output, "a: b # c");
    EXPECT_EQ(config.data.path, "x=y");
    EXPECT_EQ(override_message("training.batch_size=x"),
              "--set training.batch_size=x: training.batch_size: expected an integer from 1 "
              "to 1048576, got 'x'");
    EXPECT_THAT(override_message("training.bach_size=3"), EndsWith("did you mean 'batch_size'?"));
    EXPECT_THAT(override_message("trainin.batch_size=3"), EndsWith("did you mean 'training'?"));
    EXPECT_THAT(override_message("training.lr=3"),
                EndsWith("got 'lr'; did you mean 'training.learning_rate'?"))
        << "a name in other programs";
    EXPECT_THAT(override_message("training.num_workers=3"),
                EndsWith("did you mean 'data.decode_threads'?"));
    EXPECT_THAT(override_message("workload.epochs=2"), HasSubstr("training.warmup_epochs"));
    EXPECT_EQ(message_of("", {"training.warmup_epochs=91"}),
              "--set training.warmup_epochs=91: training.warmup_epochs: expected less than "
              "workload.epochs, which is 90, such as 0, got '91'");
    EXPECT_THAT(message_of("", {"run.seed=1", "run.seed=2"}), HasSubstr("expected each key once"));
    for (const char* given : {"", "=", ".", "run", "run.seed", "run=3", "seed=3", "a=b.c"}) {
        EXPECT_THAT(override_message(given), HasSubstr("expected section.key=value")) << given;
    }
    for (const char* given : {"run.=3", ".seed=3", "run.seed=", "run.seed=&a 3", "run.seed=*a",
                              "run.seed=3\nbagging: 4", "run.seed=1\t", "run.name=\xFF",
                              "data.mean=[0.1, 0.2", "run.seed=010", "run.name=a\nb"}) {
        EXPECT_THAT(override_message(given), StartsWith("--set ")) << given;
    }
}

TEST(ReadFile, ReadsFilesAndRejectsEverythingElse) {
    const auto folder = std::filesystem::path(testing::TempDir()) / "hpcai500_config_read_file";
    std::filesystem::create_directories(folder);
    const std::string file = folder / "a.yaml";
    const auto failure = [](const std::string& path) -> std::string {
        try {
            read_file(path);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::usage);
            return error.what();
        }
        return "read";
    };
    std::ofstream(file) << "run:\n";
    EXPECT_EQ(read_file(file), "run:\n");
    EXPECT_THAT(failure(folder / "absent.yaml"),
                EndsWith("absent.yaml': cannot be read: No such file or directory"));
    EXPECT_THAT(failure(folder / "a.yml"),
                EndsWith(": No such file or directory; did you mean '" + file + "'?"));
    EXPECT_THAT(failure(folder), HasSubstr("got a folder"));
    EXPECT_THAT(failure("/dev/zero"), HasSubstr("at most 1 MiB"));
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hpcai::config
