// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/config/keys.hpp>
#include <hpcai/config/writer.hpp>

#include "config/config_messages.hpp"

namespace hpcai::config {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::filesystem::path source_folder() {
    const char* folder = std::getenv("HPCAI500_SOURCE_DIR");
    return folder ? folder : ".";
}

std::vector<Value> values_of(const Config& config) {
    std::vector<Value> values;
    for (const Key& key : keys()) values.push_back(key.get(config));
    return values;
}

/// Returns a legal value that is not the default.
Value another_value(const Key& key) {
    const Value usual = key.get(Config{});
    switch (key.type) {
        case KeyType::text:
            return std::string(key.is_file_name ? "b.2" : "it's \"a\\b\": # \xE2\x82\xAC");
        case KeyType::boolean:
            return key.may_be_auto || !std::get<bool>(usual);
        case KeyType::integer:
            return key.may_be_auto ? std::int64_t{32} : std::get<std::int64_t>(usual) + 32;
        case KeyType::number:
            return (key.may_be_auto ? 1 : std::get<double>(usual)) * 0.7 + 1.0 / (1 << 20);
        case KeyType::choice:
            return key.choices.back() == std::get<std::string>(usual) ? key.choices.front()
                                                                      : key.choices.back();
        case KeyType::integer_list:
            return std::vector<int>{1, 2, 77};
        case KeyType::number_list:
            return std::vector<double>{1.0 / 3, 0.0625 + 1e-7, 1};
        case KeyType::text_list:
            return std::vector<std::string>{"WBC", "it's \"a\\b\", [c]: # \xE2\x82\xAC"};
    }
    return {};
}

TEST(Keys, EachHasItsOwnNameMeaningAndMember) {
    std::set<std::string> names;
    for (const Key& key : keys()) {
        EXPECT_TRUE(names.insert(key.full_name()).second) << key.full_name();
        EXPECT_TRUE(key.meaning.ends_with('.')) << key.full_name();
        EXPECT_EQ(find_key(key.section, key.name), &key);
        EXPECT_EQ(std::ranges::count(sections(), key.section, &Section::name), 1);
        Config config;
        key.set(config, another_value(key));
        const std::vector<Value> before = values_of(Config{});
        const std::vector<Value> after = values_of(config);
        for (std::size_t i = 0; i < keys().size(); ++i) {
            const bool may_differ = &keys()[i] == &key && key.choices.size() != 1;
            EXPECT_EQ(before[i] != after[i], may_differ) << key.full_name();
        }
    }
    EXPECT_GE(keys().size(), 60u);
}

TEST(Keys, DefaultsAreLegalAndConsistent) {
    for (const Key& key : keys()) {
        const std::string text = yaml_value(key, key.get(Config{}));
        EXPECT_EQ(message_of(fmt::format("{}: {{{}: {}}}", key.section, key.name, text)),
                  "accepted");
    }
}

TEST(Writer, YamlReadsBackAsTheSameConfig) {
    EXPECT_EQ(values_of(parse(to_yaml(Config{}), "f.yaml", {})), values_of(Config{}));
    Config config;
    for (const Key& key : keys()) key.set(config, another_value(key));
    config.run.trace = false;        // the run has no measurements
    config.run.keep_weights = true;  // the run is rankable
    config.run.level = Level::free;  // aiperf is for searches
    config.workload.kind = WorkloadKind::object_detection;
    config.search = SearchConfig{};  // no other workload searches
    config.workload.model = Model::faster_rcnn_r50_fpn;
    config.data.kind = DataKind::voc;  // reads no folder of images
    config.data.image_path = config.data.validation_image_path = "";
    config.data.resident_mib = 0;
    config.data.decoder = Decoder::cpu;
    config.parallel.mode = ParallelMode::data;  // detectors have no pipeline
    config.parallel.micro_batches = 1;
    config.parallel.schedule = ParallelConfig{}.schedule;
    config.parallel.pipeline_degree = config.parallel.model_degree = 1;
    config.data.random_area_minimum = DataConfig{}.random_area_minimum;
    config.detector.anchor_ratios = {0.5, 1.0 / 3};
    config.workload.channels = 3;  // kind voc, mean and standard_deviation require it
    config.detector.trained_stages = 5;
    config.detector.anchor_sizes = {10, 22.5, 30, 40, 50};
    config.training.label_smoothing = 0;
    config.training.optimizer = Optimizer::lars;
    config.training.beta1 = Config{}.training.beta1;  // lars does not use it
    config.communication.algorithm = AllReduceAlgorithm::hierarchical;
    config.communication.torus_columns = std::nullopt;
    config.training.beta2 = Config{}.training.beta2;
    config.training.batch_norm_samples = std::nullopt;  // group normalization has none
    config.training.precision = Precision::mixed;       // device.kind is cuda
    EXPECT_EQ(values_of(parse(to_yaml(config), "f.yaml", {})), values_of(config));
    Config other;
    other.run.trace = true;
    other.parallel = {ParallelMode::mixed, 2, 3, 4, PipelineSchedule::gpipe, 5};
    other.training.optimizer = Optimizer::lamb;
    other.training.beta1 = 1.0 / 3;
    other.training.beta2 = 2.0 / 3;
    other.training.batch_norm_samples = 32;
    EXPECT_EQ(values_of(parse(to_yaml(other), "f.yaml", {})), values_of(other));
}

TEST(Writer, NumbersReadBackBitForBitAndAlsoInYaml1_1) {
    Config config;
    for (const double number : {0.1, 1.0 / 3, 1e-5, 3.0517578125e-05, 1e-300, 5e-324, 1.0}) {
        config.training.weight_decay = number;
        const Config back = parse(to_yaml(config), "f.yaml", {});
        EXPECT_EQ(back.training.weight_decay, number);
    }
    config.training.weight_decay = 1e-5;
    EXPECT_THAT(to_yaml(config), HasSubstr("weight_decay: 1.0e-05\n"));
}

TEST(Writer, JsonHoldsEveryKey) {
    Config config;
    config.run.name = "a\"b";
    const json document = json::parse(to_json(config));
    EXPECT_EQ(document["run"]["name"], "a\"b");
    EXPECT_EQ(document["bagging"]["M"], "auto");
    EXPECT_EQ(document["workload"]["epochs"], 90);
    EXPECT_EQ(document["data"]["mean"], (json{0.485, 0.456, 0.406}));
    for (const Key& key : keys()) EXPECT_TRUE(document[key.section].contains(key.name));
    EXPECT_EQ(to_yaml(parse(to_json(Config{}), "result.json", {})), to_yaml(Config{}));
}

TEST(Writer, ValueTextNamesChoicesAndRejectsUnknownKeys) {
    EXPECT_EQ(value_text(Config{}, "workload.model"), "resnet50_v1.5");
    EXPECT_EQ(value_text(Config{}, "run.name"), "run");
    EXPECT_EQ(value_text(Config{}, "bagging.M"), "auto");
    EXPECT_THROW(value_text(Config{}, "run.absent"), Error);
    EXPECT_THROW(value_text(Config{}, "run"), Error);
}

TEST(Explain, ShowsOneKeyOneSectionOrAll) {
    EXPECT_EQ(explain("training.batch_size"),
              "training.batch_size\n"
              "    Samples in one step of one base model, over all its ranks.\n"
              "    default: 256   legal: an integer from 1 to 1048576   unit: "
              "samples\n");
    EXPECT_EQ(explain("training").find("bagging.M"), std::string::npos);
    for (const Key& key : keys()) EXPECT_THAT(explain(""), HasSubstr(key.full_name() + "\n"));
    std::istringstream lines(explain(""));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
    for (const char* name : {"trainin", "training.bach_size", "batch_size", "run.", "."}) {
        EXPECT_THROW(explain(name), Error) << name;
    }
}

TEST(Schema, RestrictsEveryKeyAsTheReaderDoes) {
    const json schema = json::parse(json_schema());
    EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    EXPECT_EQ(schema["additionalProperties"], false);
    std::size_t count = 0;
    for (const auto& section : schema["properties"]) {
        EXPECT_EQ(section["additionalProperties"], false);
        count += section["properties"].size();
    }
    EXPECT_EQ(count, keys().size());
    const json& training = schema["properties"]["training"]["properties"];
    EXPECT_EQ(training["batch_size"]["minimum"], 1);
    EXPECT_EQ(training["batch_size"]["default"], 256);
    EXPECT_EQ(training["momentum"]["exclusiveMaximum"], 1.0);
    EXPECT_EQ(training["precision"]["enum"],
              (json{"auto", "fp32", "tf32", "fp16", "mixed", "bf16", "int8"}));
    for (const char* name : {"batch_norm_samples", "epsilon", "momentum_correction"}) {
        EXPECT_EQ(training[name]["anyOf"][0]["const"], "auto");
    }
    EXPECT_EQ(training["epsilon"]["anyOf"][1]["maximum"], 1.0);
    EXPECT_EQ(training["momentum_correction"]["anyOf"][1]["type"], "boolean");
}

TEST(Schema, HoldsNoNullWhereALimitIsMissing) {
    EXPECT_EQ(json_schema().find("imum\": null"), std::string::npos);
}

TEST(ReadyConfigurations, ParseAndCommentEveryKey) {
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(source_folder() / "configs")) {
        if (entry.is_directory()) continue;
        SCOPED_TRACE(entry.path().filename().string());
        const std::string text = read_file(entry.path());
        EXPECT_EQ(message_of(text), "accepted");
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            EXPECT_LE(line.size(), 100u) << line;
            const bool is_key = line.starts_with("  ") && line.find(": ") != std::string::npos;
            EXPECT_TRUE(!is_key || line.find('#') != std::string::npos) << line;
        }
        ++files;
    }
    EXPECT_GE(files, 6);
}

TEST(ConfigurationReference, IsTheTextMadeFromTheTable) {
    std::ifstream stream(source_folder() / "docs" / "CONFIG.md");
    std::stringstream committed;
    committed << stream.rdbuf();
    EXPECT_TRUE(committed.str() == markdown())
        << "docs/CONFIG.md is out of date: hpcai500 config explain --markdown > docs/CONFIG.md";
}

}  // namespace
}  // namespace hpcai::config
